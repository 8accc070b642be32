"""Which sizes get programs of their own, and which program a call runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from weft.runtime.model import hot_shapes
from weft.runtime.model.hot_shapes import HotShapes, places_of
from weft.support.errors import IRValueError

PLACES = [("n", 0, 0), ("m", 1, 1)]


class Program:
    """A model of two inputs that says which one it is; ``refuses`` what does not fit it."""

    num_threads = None

    def __init__(self, name, size=0, refuses=False):
        self.name, self.size, self.refuses, self.calls = name, size, refuses, 0

    def run_as_compiled(self, args, kwargs):
        self.calls += 1
        if self.refuses:
            raise IRValueError(f"{self.name} refuses")
        return self.name

    def given_inputs(self, args, kwargs):
        return [*args, *kwargs.values()]

    def constant_bytes(self):
        return self.size


@pytest.fixture(autouse=True)
def hot_at_once(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "0")


def finish():
    for thread in threading.enumerate():
        if thread.name == hot_shapes.THREAD_NAME:
            thread.join(10)


def shapes(compiler=None, most=2):
    def named(extents, num_threads):
        return Program(f"program for {extents}")

    return HotShapes("net", PLACES, most, compiler or named)


def inputs(n, m):
    return np.zeros((n, 3)), np.zeros((3, m))


def test_a_hot_size_gets_a_program_and_others_keep_the_general_one():
    hot, general = shapes(), Program("general")
    assert hot.call(general, inputs(2, 5), {}) == "general"
    finish()
    assert hot.extents == ((2, 5),)
    assert hot.call(general, inputs(2, 5), {}) == "program for (2, 5)"
    x, y = inputs(2, 5)
    assert hot.call(general, (x,), {"y": y}) == "program for (2, 5)"
    assert hot.call(general, inputs(2, 4), {}) == "general"
    assert hot.program_for(general, inputs(3, 3), {}) is general


def test_no_more_sizes_than_asked_for():
    hot, general = shapes(most=2), Program("general")
    for size in range(5):
        hot.call(general, inputs(size, 1), {})
        finish()
    assert hot.extents == ((0, 1), (1, 1))
    hot.compile((4, 1))  # who asks gets one
    assert hot.call(general, inputs(4, 1), {}) == "program for (4, 1)"


def test_seconds_are_added_up(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "10")
    now = [0.0]
    monkeypatch.setattr(hot_shapes.time, "perf_counter", lambda: now[0])

    class Slow(Program):
        def run_as_compiled(self, args, kwargs):
            now[0] += 4
            return super().run_as_compiled(args, kwargs)

    hot, general = shapes(), Slow("general")
    for calls in (1, 2, 3):
        finish()
        assert hot.extents == (), calls
        hot.call(general, inputs(2, 2), {})
        hot.call(general, inputs(2, calls + 2), {})
    finish()
    assert hot.extents == ((2, 2),)


def test_of_short_calls_some_are_timed_and_count_for_all(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "1")
    now, readings = [0.0], []

    def read():
        readings.append(now[0])
        return now[0]

    monkeypatch.setattr(hot_shapes.time, "perf_counter", read)

    class Short(Program):
        def run_as_compiled(self, args, kwargs):
            now[0] += 0.0005
            return super().run_as_compiled(args, kwargs)

    hot, general = shapes(), Short("general")
    calls = 0
    while not hot._begun:
        hot.call(general, inputs(2, 2), {})
        hot.call(general, inputs(3, 3), {})  # they take turns
        calls += 1
    finish()
    assert hot.extents
    assert 1900 < calls < 2100  # a second of each, as if all were timed
    assert len(readings) < 2 * 2 * calls / 5


def test_sizes_that_come_once_are_forgotten(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "1000")
    monkeypatch.setattr(hot_shapes, "_REMEMBERED", 8)
    hot, general = shapes(), Program("general")
    for size in range(100):
        hot.call(general, inputs(size, 1), {})
    assert len(hot._seconds) <= 8


def test_a_failure_leaves_the_general_program_and_is_logged(caplog):
    def compiler(extents, num_threads):
        raise IRValueError("no compiler today")

    hot, general = shapes(compiler), Program("general")
    for _ in range(3):
        assert hot.call(general, inputs(2, 5), {}) == "general"
        finish()
    assert hot.extents == ()
    assert [record.getMessage() for record in caplog.records] == [
        "net: no program for the sizes (2, 5): no compiler today"
    ]
    with pytest.raises(IRValueError, match="no compiler today"):
        hot.compile((2, 5))


def test_what_a_program_refuses_is_told_by_the_general_one():
    hot = shapes(lambda extents, num_threads: Program("special", refuses=True))
    hot.compile((2, 5))
    assert hot.call(Program("general"), inputs(2, 5), {}) == "general"
    with pytest.raises(IRValueError, match="general refuses"):
        hot.call(Program("general", refuses=True), inputs(2, 5), {})


def test_weights_have_a_limit(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SIZE", "5")
    hot = shapes(lambda extents, num_threads: Program("special", size=2 << 20))
    hot.compile((1, 1))
    hot.compile((1, 2))
    with pytest.raises(IRValueError, match="6 MiB of weights, and WEFT_HOT_SIZE is 5"):
        hot.compile((1, 3))
    assert hot.extents == ((1, 1), (1, 2))


@pytest.mark.parametrize("args", [(), (np.zeros(()), np.zeros(3)), ("text", [1.0])])
def test_arguments_without_extents_go_to_the_general_program(args):
    hot, general = shapes(), Program("general")
    assert hot.call(general, args, {}) == "general"
    finish()
    assert hot.extents == ()


def test_threads_of_all_programs():
    hot = shapes()
    hot.compile((1, 1))
    hot.set_num_threads(3)
    hot.compile((1, 2))
    assert [program.num_threads for program in hot._programs.values()] == [3, None]


@pytest.mark.parametrize(
    ("extents", "places"),
    [
        ([("n", 4), ("n * 2", "m")], [("n", 0, 0), ("m", 1, 1)]),
        ([(3, 4), (5,)], None),
        ([("n + 1", 4)], None),
        ([("n", 4), ("k + n",)], None),
        ([("n",), None], None),
    ],
)
def test_places_of_symbols(extents, places):
    params = [(f"x{at}", ("tensor", "float32", shape, 2)) for at, shape in enumerate(extents)]
    assert places_of(params) == places
