"""Timing a function: ``time_evaluator`` and the BenchmarkResult that it returns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from weft.runtime.native.native_library import NativeFunction
from weft.runtime.registry import PackedFunc
from weft.support.errors import IRTypeError, IRValueError


class BenchmarkResult:
    """Seconds per call: one number for each repeat, and what they say together."""

    __slots__ = ("max", "mean", "median", "min", "results", "std")

    def __init__(self, results: Sequence[float]) -> None:
        if not results:
            raise IRValueError("expected at least one measured time, got none")
        self.results = tuple(results)
        self.mean = statistics.fmean(self.results)
        self.std = statistics.pstdev(self.results)
        self.median = statistics.median(self.results)
        self.min = min(self.results)
        self.max = max(self.results)

    def __repr__(self) -> str:
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, "
            f"max={self.max}, std={self.std}, results={self.results})"
        )

    def __str__(self) -> str:
        names = ("mean (ms)", "median (ms)", "max (ms)", "min (ms)", "std (ms)")
        values = (self.mean, self.median, self.max, self.min, self.std)
        head = "".join(f"{name:^14}" for name in names)
        body = "".join(f"{value * 1000:^14.4f}" for value in values)
        return f"Execution time summary:\n{head.rstrip()}\n{body.rstrip()}"


class Evaluator:
    """Measures one function: call it with the arguments that the function gets."""

    __slots__ = ("_cooldown", "_function", "_min_repeat", "_number", "_repeat", "_tries")

    def __init__(
        self,
        function: PackedFunc,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> None:
        _require_numbers(int, number=number, repeat=repeat)
        _require_numbers(
            (int, float),
            min_repeat_ms=min_repeat_ms,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
            limit_zero_time_iterations=limit_zero_time_iterations,
        )
        if number < 1 or repeat < 1:
            raise IRValueError(
                f"expected number and repeat of at least 1, got {number} and {repeat}"
            )
        self._function = function
        self._number = number
        self._repeat = repeat
        self._min_repeat = min_repeat_ms / 1000
        self._tries = limit_zero_time_iterations
        self._cooldown = (cooldown_interval_ms / 1000, max(1, repeats_to_cooldown))

    def __call__(self, *args: object) -> BenchmarkResult:
        function = self._function
        call: Callable[..., object] = function
        if isinstance(function, NativeFunction) and not function.spec.calls_packed:
            call, args = function.bind(*args), ()
        call(*args)
        number = self._number
        results = []
        pause, every = self._cooldown
        for position in range(self._repeat):
            elapsed, number = self._measure(call, args, number)
            results.append(elapsed / number)
            if pause and (position + 1) % every == 0:
                time.sleep(pause)
        return BenchmarkResult(results)

    def _measure(
        self, call: Callable[..., object], args: tuple[object, ...], number: int
    ) -> tuple[float, int]:
        """Time ``number`` calls, more of them until they take the least time asked for."""
        zero_times = 0
        while True:
            elapsed = seconds_of_calls(call, args, number)
            if elapsed >= self._min_repeat and elapsed > 0:
                return elapsed, number
            zero_times += elapsed == 0
            if zero_times >= max(1, self._tries):
                return elapsed, number
            scale = self._min_repeat / elapsed if elapsed else 2.0
            number = max(number + 1, min(int(number * scale * 1.1) + 1, number * 100))


def _require_numbers(kind: type | tuple[type, ...], **values: object) -> None:
    for name, value in values.items():
        if not isinstance(value, kind):
            wanted = "an integer" if kind is int else "a number"
            raise IRTypeError(f"time_evaluator: expected {wanted} for {name}, got {value!r}")


def seconds_of_calls(call: Callable[..., object], args: tuple[object, ...], number: int) -> float:
    """How long ``number`` calls take, one after the other."""
    begin = time.perf_counter()
    for _ in range(number):
        call(*args)
    return time.perf_counter() - begin
