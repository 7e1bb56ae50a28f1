"""Ctrl-C during an execution or a compilation, forks while other threads compile, and the end of the interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

HEAD = """
import os, signal, sys, threading, time
import numpy as np
from halfulp import ops
from halfulp.compiler import CompileOptions, DType, Graph, TensorType
from halfulp.runtime import InferenceSession

def graph(name="g"):
    return Graph(name, lambda x: ops.softmax(ops.exp(x) * 0.5), [TensorType(DType.float32, ["n", "m"])])

def interrupt_after(seconds):
    main = os.getpid()
    threading.Thread(target=lambda: (time.sleep(seconds), os.kill(main, signal.SIGINT)), daemon=True).start()

big = np.ones((20_000, 1000), np.float32)
small = np.ones((3, 5), np.float32)
options = CompileOptions(threads=2)
"""


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"HALFULP_CACHE": "0", **environment},
    )


def test_ctrl_c_during_executions_leaves_the_model_usable() -> None:
    run = run_python(
        """
        model = InferenceSession().load(graph(), options)
        expected = model(small)[0].to_numpy().tobytes()
        interrupts = 0
        for wait in (0.01, 0.05, 0.09):
            interrupt_after(wait)
            try:
                while True:
                    model(big)
            except KeyboardInterrupt:
                interrupts += 1
        print(interrupts, model(small)[0].to_numpy().tobytes() == expected)
        """
    )
    assert (run.stdout, run.stderr) == ("3 True\n", "")


LOOPS = """
def loop(name, step):
    def forward(x):
        return ops.while_loop([x], lambda v: v.reshape([]) < 1e30, lambda v: [step(v)])
    return InferenceSession().load(Graph(name, forward, [TensorType(DType.float32, [1])]))

one = np.ones(1, np.float32)
"""


def test_ctrl_c_ends_an_endless_loop() -> None:
    run = run_python(
        LOOPS
        + textwrap.dedent(
            """
            model = loop("forever", lambda v: v * 1.0)
            for wait in (0.1, 0.5):
                interrupt_after(wait)
                start = time.monotonic()
                try:
                    model(one)
                except KeyboardInterrupt as error:
                    print(type(error.__cause__), wait <= time.monotonic() - start < wait + 5)
            print(loop("doubling", lambda v: v * 2.0)(one)[0].to_numpy() >= 1e30)
            print(sys.unraisablehook is sys.__unraisablehook__)
            """
        )
    )
    assert (run.stdout, run.stderr) == ("<class 'NoneType'> True\n" * 2 + "[ True]\nTrue\n", "")


def test_another_handler_and_another_thread() -> None:
    """A handler may raise what it likes; loops of other threads go on, and signals of the main thread still come."""
    run = run_python(
        LOOPS
        + textwrap.dedent(
            """
            class Alarm(Exception):
                pass

            def handle(number, frame):
                raise Alarm(number == signal.SIGALRM)

            signal.signal(signal.SIGALRM, handle)
            model = loop("forever", lambda v: v * 1.0)
            threading.Thread(target=lambda: model(one), daemon=True).start()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            try:
                model(one)
            except Alarm as alarm:
                print(alarm)
            os._exit(0)
            """
        ).replace("print(alarm)", "print(alarm, flush=True)")
    )
    assert (run.stdout, run.stderr) == ("True\n", "")


def test_ctrl_c_during_a_compilation_leaves_nothing_half_done(tmp_path: Path) -> None:
    run = run_python(
        """
        try:
            interrupt_after(0.05)
            for number in range(10_000):
                InferenceSession().load(graph(f"g{number}"), options)
        except KeyboardInterrupt:
            print("interrupted")
        folder = os.environ["HALFULP_CACHE_DIR"]
        print([name for name in os.listdir(folder) if name.endswith(".tmp")] if os.path.isdir(folder) else [])
        print(InferenceSession().load(graph(), options)(small)[0].shape)
        """,
        HALFULP_CACHE="1",
        HALFULP_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert (run.stdout, run.stderr) == ("interrupted\n[]\n(3, 5)\n", "")


def test_an_uncaught_ctrl_c_ends_the_process_as_python_does() -> None:
    run = run_python(
        """
        model = InferenceSession().load(graph(), options)
        interrupt_after(0.05)
        while True:
            model(big)
        """
    )
    assert run.returncode == -signal.SIGINT
    assert run.stderr.rstrip().endswith("KeyboardInterrupt")


def test_the_interpreter_ends_while_threads_execute() -> None:
    run = run_python(
        """
        model = InferenceSession().load(graph(), options)

        def work():
            while True:
                model(big)

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        print("end")
        """
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "end\n", "")


def test_a_fork_while_another_thread_compiles_and_executes() -> None:
    run = run_python(
        """
        model = InferenceSession().load(graph(), options)
        expected = model(big[:2000])[0].to_numpy().tobytes()
        stop = threading.Event()

        def compile_all():
            number = 0
            while not stop.is_set():
                number += 1
                InferenceSession().load(graph(f"g{number}"), options)

        def execute():
            while not stop.is_set():
                model(big[:2000])

        threads = [threading.Thread(target=work) for work in (compile_all, execute)]
        for thread in threads:
            thread.start()
        codes = []
        for _ in range(5):
            time.sleep(0.02)
            child = os.fork()
            if not child:
                signal.alarm(60)
                same = model(big[:2000])[0].to_numpy().tobytes() == expected
                new = InferenceSession().load(graph("in the child"), options)
                os._exit(0 if same and new(small)[0].shape == (3, 5) else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        for thread in threads:
            thread.join()
        print(codes, model(big[:2000])[0].to_numpy().tobytes() == expected)
        """
    )
    assert (run.stdout, run.stderr) == ("[0, 0, 0, 0, 0] True\n", "")
