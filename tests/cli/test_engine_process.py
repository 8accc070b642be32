"""The process of an engine that is timed: it may die, hang, or say nonsense; the parent goes on."""

from __future__ import annotations

import sys
import time

import pytest

from weft.cli.engine_process import Engine

PROGRAMS = {
    "answers": """
        import sys
        for line in sys.stdin: print('{"ready": 0.5, "seconds": 2.0}', flush=True)
    """,
    "dies": "import sys; sys.stdin.readline(); sys.exit('no such library')",
    "is killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "hangs": "import time; time.sleep(600)",
    "answers once": """
        import sys, time
        sys.stdin.readline(); print('{"ready": 0.1}', flush=True); time.sleep(600)
    """,
}


@pytest.fixture
def start(tmp_path):
    started = []

    def make(name, timeout=30.0):
        lines = [line.strip() for line in PROGRAMS[name].strip().splitlines()]
        engine = Engine(name, tmp_path, timeout, (sys.executable, "-c", "\n".join(lines)))
        started.append(engine)
        return engine

    yield make
    for engine in started:
        engine.stop()
        assert engine.process.returncode is not None


def test_answers(start):
    engine = start("answers")
    engine.load({"model": "m"})
    assert (engine.setup, engine.error) == (0.5, "")
    assert engine.ask({"run": 3}) == {"ready": 0.5, "seconds": 2.0}


def test_a_process_that_dies_leaves_its_last_words(start):
    engine = start("dies")
    engine.load({})
    assert engine.error == "its process ended with status 1: no such library"
    assert engine.ask({"run": 1}) == {"error": engine.error}
    assert start("is killed").ask({}) == {"error": "its process ended with status -9"}


@pytest.mark.parametrize("name", ["hangs", "answers once"])
def test_a_process_that_hangs_is_stopped(start, name):
    engine = start(name, timeout=1.0)
    began = time.monotonic()
    engine.load({})
    if name == "answers once":
        assert engine.error == ""
        engine.ask({"run": 1})
    assert engine.error == "no answer within 1 s; stopped (--timeout)"
    assert time.monotonic() - began < 20
    assert engine.process.wait(timeout=10) < 0
