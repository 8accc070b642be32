"""The process of an engine that is timed: it may die, hang, or say nonsense; the parent goes on."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from weft.cli.engine_process import Engine
from weft.cli.engines import Server
from weft.support.errors import UnsupportedError

PROGRAMS = {
    "answers": """
        import sys
        for line in sys.stdin: print('{"ready": 0.5, "seconds": 2.0}', flush=True)
    """,
    "dies": "import sys; sys.stdin.readline(); sys.exit('no such library')",
    "is killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "hangs": "import time; time.sleep(600)",
    "babbles": "import sys; sys.stdin.readline(); print('>>> 1'); sys.stdin.readline(); print(1)",
    "answers once": """
        import sys, time
        sys.stdin.readline(); print('{"ready": 0.1}', flush=True); time.sleep(600)
    """,
}


@pytest.fixture
def start(tmp_path):
    started = []

    def make(name, timeout=600.0):
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


def test_a_process_that_says_nonsense_has_an_error(start):
    engine = start("babbles")
    engine.load({})
    assert engine.error == "its process answered with what is no JSON object: >>> 1"
    assert engine.ask({}) == {"error": "its process answered with what is no JSON object: 1"}


@pytest.mark.parametrize("name", ["hangs", "answers once"])
def test_a_process_that_hangs_is_stopped(start, name):
    engine = start(name)
    if name == "answers once":
        engine.load({})
        assert engine.error == ""
    engine.timeout = 1.0
    engine.ask({"run": 1})
    assert engine.error == "no answer within 1 s; stopped (--timeout)"
    assert engine.process.wait() < 0


def test_a_child_serves_one_model_after_the_other(tmp_path):
    def setup(told):
        if told["model"] == "bad":
            raise ValueError("no such model")
        return lambda: {"y": [np.full(3, told["model"])]}

    server = Server({"engine": setup})
    for model in (1.0, 2.0):
        assert server({"engine": "engine", "model": model})["ready"] >= 0
        assert server({"run": 2})["seconds"] >= 0
        server({"output": str(tmp_path / "out.npz")})
        with np.load(tmp_path / "out.npz") as stored:
            assert stored["arr_0"].tolist() == [model] * 3
    with pytest.raises(UnsupportedError, match="only weft's own models"):
        server({"profile": True})
    with pytest.raises(ValueError, match="no such model"):
        server({"engine": "engine", "model": "bad"})


def test_an_engine_forgets_the_times_of_the_model_before(start):
    engine = start("answers")
    engine.load({"model": "m"})
    engine.seconds.append(1.0)
    engine.load({"model": "n"})
    assert engine.seconds == []
    assert engine.answer == {"ready": 0.5, "seconds": 2.0}
