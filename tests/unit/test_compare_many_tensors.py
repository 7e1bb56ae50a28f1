"""Folders of many files take seconds, and large files little memory."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from peak_memory import PRINT_PEAK_KIB
from torch_archive import write_pt

from halfulp.runtime import save_max_buffer
from halfulp.runtime.checkpoint import max_header
from halfulp.runtime.debug import compare_tensors

MEASURED = (
    """
import sys
from halfulp.runtime.debug import compare_tensors
found = compare_tensors(sys.argv[1], sys.argv[2], rtol=0)
print(found.pairs[0].elements, found.pairs[0].differing, found.exit_code)
"""
    + PRINT_PEAK_KIB
)


def test_ten_thousand_files_take_less_than_20_seconds(tmp_path: Path) -> None:
    torch, other = tmp_path / "torch", tmp_path / "max"
    torch.mkdir()
    other.mkdir()
    array = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    for number in range(10_000):
        layer, part = divmod(number, 10)
        write_pt(torch / f"model.model.layers.{layer}.part{part}-output.pt", array + np.float32(number))
        save_max_buffer(other / f"model.layers.layers.{layer}.part{part}-output.max", array, "x")
    before = time.process_time()
    found = compare_tensors(torch, other, rtol=1e-6)
    assert time.process_time() - before < 20
    assert (len(found.pairs), found.unpaired, found.first_failure) == (10_000, (), 1)


def test_many_files_without_a_partner_take_less_than_20_seconds(tmp_path: Path) -> None:
    for side in ("torch", "max"):
        (tmp_path / side).mkdir()
        for number in range(3000):
            array = np.random.default_rng([number, side == "max"]).standard_normal(8).astype(np.float32)
            save_max_buffer(tmp_path / side / f"{side}{number}.max", array, "x")
    before = time.process_time()
    found = compare_tensors(tmp_path / "torch", tmp_path / "max")
    assert time.process_time() - before < 20
    assert len(found.unpaired) == 6000


def test_file_of_2_gib_is_compared_in_300_mb(tmp_path: Path) -> None:
    count = 2**31 // 8
    shape = np.lib.stride_tricks.as_strided(np.zeros(1), (count,), (0,))
    header = max_header(shape, "x")
    for name, last in (("a.max", b"\0" * 8), ("b.max", b"\0" * 7 + b"\1")):
        with (tmp_path / name).open("wb") as file:  # with holes, which read as zeros
            file.write(header)
            file.seek(2**31 - 8, 1)
            file.write(last)
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "a.max"), str(tmp_path / "b.max")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    measured, memory = done.stdout.splitlines()
    assert measured == f"{count} 1 1"
    assert int(memory) < 300_000
