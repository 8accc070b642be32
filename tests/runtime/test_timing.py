"""Measurements: how often a function is called, how long pauses are, and what a result says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from weft.runtime import timing
from weft.runtime.registry import PackedFunc
from weft.runtime.timing import BenchmarkResult, Evaluator, seconds_of_calls
from weft.support.errors import IRTypeError, IRValueError


class Clock:
    """A clock that moves by what a call takes, and remembers pauses."""

    def __init__(self, monkeypatch, took):
        self.now, self.calls, self.pauses, self.took = 0.0, 0, [], took
        clock = SimpleNamespace(perf_counter=lambda: self.now, sleep=self.pauses.append)
        monkeypatch.setattr(timing, "time", clock)

    def call(self, *_):
        self.calls += 1
        self.now += self.took


@pytest.fixture
def clock(monkeypatch):
    return lambda took: Clock(monkeypatch, took)


def test_each_repeat_is_the_mean_of_its_calls(clock):
    it = clock(0.5)
    result = Evaluator(PackedFunc(it.call), number=4, repeat=3)(1, 2)
    assert result.results == (0.5, 0.5, 0.5)
    assert it.calls == 1 + 4 * 3  # the first one warms up


def test_short_calls_are_repeated_until_they_take_the_least_time(clock):
    it = clock(0.001)
    result = Evaluator(PackedFunc(it.call), number=1, repeat=2, min_repeat_ms=100)()
    assert result.mean == pytest.approx(0.001)
    assert it.now >= 0.2
    assert it.calls < 300  # the number grows by what is missing, not by one


def test_a_clock_that_stands_still_ends_the_search(clock):
    it = clock(0.0)
    result = Evaluator(PackedFunc(it.call), number=1, limit_zero_time_iterations=5)()
    assert result.mean == 0
    assert it.calls < 100


PAUSES = [(4, 1, 4), (4, 2, 2), (3, 2, 1), (2, 5, 0)]


@pytest.mark.parametrize(("repeat", "every", "pauses"), PAUSES)
def test_pauses_come_after_so_many_repeats(clock, repeat, every, pauses):
    it = clock(0.1)
    Evaluator(
        PackedFunc(it.call), number=1, repeat=repeat, cooldown_interval_ms=20,
        repeats_to_cooldown=every,
    )()  # fmt: skip
    assert it.pauses == [0.02] * pauses


WRONG = [
    ({"number": 0}, IRValueError, "number and repeat of at least 1, got 0 and 1"),
    ({"repeat": 0}, IRValueError, "number and repeat of at least 1, got 10 and 0"),
    ({"number": 1.5}, IRTypeError, "expected an integer for number, got 1.5"),
    ({"repeat": "3"}, IRTypeError, "expected an integer for repeat, got '3'"),
    ({"min_repeat_ms": None}, IRTypeError, "expected a number for min_repeat_ms, got None"),
    ({"cooldown_interval_ms": "1"}, IRTypeError, "expected a number for cooldown_interval_ms"),
]


@pytest.mark.parametrize(("options", "kind", "text"), WRONG)
def test_numbers_that_are_none(options, kind, text):
    with pytest.raises(kind, match=text):
        Evaluator(PackedFunc(print), **options)


def test_an_error_of_the_function_is_the_callers():
    def fails():
        raise KeyError("inside")

    with pytest.raises(KeyError, match="inside"):
        Evaluator(PackedFunc(fails))()


def test_what_a_result_says():
    result = BenchmarkResult([0.001, 0.003, 0.002, 0.002])
    assert result.mean == result.median == pytest.approx(0.002)
    assert (result.min, result.max) == (0.001, 0.003)
    assert result.std == pytest.approx(0.000707, rel=1e-3)
    head, names, values = str(result).splitlines()
    assert head == "Execution time summary:"
    assert names.split() == ["mean", "(ms)", "median", "(ms)", "max", "(ms)", "min", "(ms)",
                             "std", "(ms)"]  # fmt: skip
    assert values.split() == ["2.0000", "2.0000", "3.0000", "1.0000", "0.7071"]
    assert "results=(0.001, 0.003, 0.002, 0.002)" in repr(result)
    with pytest.raises(IRValueError, match="expected at least one measured time, got none"):
        BenchmarkResult([])


def test_seconds_of_calls_one_after_the_other(clock):
    it = clock(0.25)
    assert seconds_of_calls(it.call, (1,), 3) == 0.75
