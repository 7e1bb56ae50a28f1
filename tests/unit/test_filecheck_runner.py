"""The FileCheck tests can fail: what tests/filecheck/conftest.py makes of good and bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[1] / "filecheck" / "conftest.py"
BODY = """
func.func @f(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  func.return %y : f32
}
"""


def run(pytester: pytest.Pytester, text: str) -> pytest.RunResult:
    pytester.makeconftest(RUNNER.read_text(encoding="utf-8"))
    pytester.makefile(".mlir", case=text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider")


def test_matching_output_passes(pytester: pytest.Pytester) -> None:
    text = "// RUN: halfulp-opt %s | filecheck %s\n" + BODY + "// CHECK: arith.addf %x, %x\n"
    run(pytester, text).assert_outcomes(passed=1)


def test_wrong_check_fails_and_shows_message_and_output(pytester: pytest.Pytester) -> None:
    text = "// RUN: halfulp-opt %s | filecheck %s\n" + BODY + "// CHECK: arith.mulf\n"
    result = run(pytester, text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "RUN: halfulp-opt %s | filecheck %s",
            '*case.mlir:7: error: Couldn\'t match "arith.mulf".',
            "output of halfulp-opt:",
            "*%y = arith.addf %x, %x : f32",
        ]
    )


def test_each_run_line_is_a_test_with_its_own_prefix(pytester: pytest.Pytester) -> None:
    runs = (
        "// RUN: halfulp-opt %s | filecheck %s --check-prefix=PLAIN\n"
        "// RUN: halfulp-opt %s \\\n"
        "// RUN:   --print-op-generic | filecheck %s --check-prefix=GENERIC\n"
    )
    result = run(pytester, runs + BODY + '// PLAIN: arith.addf\n// GENERIC: "arith.subf"\n')
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*case.mlir: RUN2-GENERIC*"])


def test_failing_program_fails_with_its_errors(pytester: pytest.Pytester) -> None:
    text = "// RUN: halfulp-opt %s -p no-such-pass | filecheck %s\n" + BODY + "// CHECK: arith.addf\n"
    result = run(pytester, text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["halfulp-opt failed with exit status 2:", "halfulp-opt: error: there is no pass 'no-such-pass'*"]
    )


def test_misspelt_option_fails(pytester: pytest.Pytester) -> None:
    text = "// RUN: halfulp-opt %s --no-such-option | filecheck %s\n" + BODY + "// CHECK: arith.addf\n"
    result = run(pytester, text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["halfulp-opt: error: unrecognized arguments: --no-such-option"])


def test_prefix_without_checks_fails(pytester: pytest.Pytester) -> None:
    text = "// RUN: halfulp-opt %s | filecheck %s --check-prefix=NONE\n" + BODY
    result = run(pytester, text)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["filecheck error: No check strings found with prefix NONE:"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BODY, "*case.mlir: no RUN line"),
        (
            "// RUN: halfulp-opt %s | filecheck %s\n// CHECK: func\n// CHECK-NXT: func\n// OTHER-SAME: func\n",
            "*case.mlir: no RUN line reads the checks CHECK-NXT, OTHER",
        ),
        (
            "// RUN: halfulp-opt %s\n",
            "*case.mlir: a RUN line must read 'halfulp-opt ... | filecheck ...', not 'halfulp-opt %s'",
        ),
        (
            "// RUN: mlir-opt %s | filecheck %s\n",
            "*case.mlir: a RUN line must read 'halfulp-opt ... | filecheck ...', not 'mlir-opt %s | filecheck %s'",
        ),
    ],
)
def test_file_that_would_check_nothing_is_an_error(pytester: pytest.Pytester, text: str, message: str) -> None:
    result = run(pytester, text)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
