"""Checks of schedules: the program computes the same, and the trace gives it again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.backends.cpu.backend import BACKEND
from weft.driver.pipeline import lower_tir
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.relax.transform.memory.over_argument import over_argument
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.ndarray import array
from weft.support.dtype import DataType
from weft.support.errors import TVMError
from weft.support.lazy_property import lazy_property
from weft.target.target import Target
from weft.tir.analysis.overwritable import overwritable_arguments
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.testing import verify_trace_roundtrip

TOLERANCE = 1e-5
Argument = np.ndarray | int
"""An array for a buffer, a number for a scalar parameter."""


def random_arguments(
    func: PrimFunc, sizes: dict[str, int] | None = None, seed: int = 0
) -> list[Argument]:
    """Random values for the buffers of a function: small integers, floats in [-1, 1).

    ``sizes`` gives symbolic extents their values by name.
    """
    rng = np.random.default_rng(seed)
    arguments: list[Argument] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            arguments.append((sizes or {}).get(param.name, 3))
            continue
        shape = [_extent(item, sizes or {}) for item in buffer.shape]
        arguments.append(_values(rng, shape, buffer.dtype))
    return arguments


def _extent(expr: PrimExpr, sizes: dict[str, int]) -> int:
    symbols = {var: IntImm(var.dtype, sizes[var.name]) for var in collect(expr, Var)}
    value = Analyzer().simplify(substitute(expr, symbols))
    if not isinstance(value, IntImm):
        raise TVMError(f"random_arguments: the extent {expr} is not known; give its symbols")
    return value.value


def _values(rng: np.random.Generator, shape: list[int], dtype: DataType) -> np.ndarray:
    if dtype.is_bool:
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if dtype.is_integral:
        values = rng.integers(0 if dtype.is_uint else -9, 10, shape)
        return np.asarray(values).astype(dtype.numpy)
    return np.asarray(rng.random(shape) * 2 - 1).astype(dtype.numpy)


def assert_same_meaning(
    before: PrimFunc | IRModule,
    after: PrimFunc | IRModule,
    sizes: dict[str, int] | None = None,
    *,
    native: bool = True,
    seed: int = 0,
) -> None:
    """Both programs give the same results on random arguments.

    ``before`` and ``after`` run in the interpreter, ``after`` also lowered and, with ``native``, as
    LLVM code. Integers must be equal. Floats may differ by 1e-5 of the largest value, or of the
    largest value for the absolute values of the arguments: a schedule may add in another order, and
    a sum of terms of both signs may be much smaller than its terms.
    """
    first, second = _function(before), _function(after)
    given = random_arguments(first, sizes, seed)
    _assert_gives(second, given, _Expected(first, given), native)


def assert_same_in_place(
    func: PrimFunc, sizes: dict[str, int] | None = None, *, seed: int = 0
) -> tuple[int, ...]:
    """A function gives the same results over each argument that its result may be written over.

    Returns the positions of those arguments.
    """
    positions = overwritable_arguments(func)
    given = random_arguments(func, sizes, seed)
    for index in positions:
        expected = _Expected(func, given, over=index)
        _assert_gives(over_argument(func, index), given[:-1], expected, native=True)
    return positions


class _Expected:
    """What a function computes from its arguments, and from their absolute values.

    ``over`` is the argument that the last one, the result, is to be written over.
    """

    def __init__(self, func: PrimFunc, given: Sequence[Argument], over: int | None = None) -> None:
        self.func, self.given, self.over = func, given, over

    @lazy_property
    def results(self) -> list[np.ndarray]:
        return self._of(self.given)

    @lazy_property
    def magnitudes(self) -> list[np.ndarray]:
        """The scale of rounding errors: for a sum of products, the sum of absolute products."""
        with np.errstate(all="ignore"):
            return self._of([np.abs(item) if _is_float(item) else item for item in self.given])

    def _of(self, given: Sequence[Argument]) -> list[np.ndarray]:
        arrays = _results(lambda *args: run(self.func, *args), given)
        if self.over is None:
            return arrays
        *same, result = arrays
        return [result if at == self.over else item for at, item in enumerate(same)]


def _is_float(item: object) -> TypeGuard[np.ndarray]:
    return isinstance(item, np.ndarray) and item.dtype.kind not in "iub"


def _assert_gives(
    func: PrimFunc, given: Sequence[Argument], expected: _Expected, native: bool
) -> None:
    """A function gives these results as it is, lowered and, with ``native``, as LLVM code."""
    _compare("interpreted", expected, _results(lambda *args: run(func, *args), given))
    lowered = lower_tir()(IRModule({"main": func}))
    _compare("lowered", expected, _results(lambda *args: run(lowered["main"], *args), given))
    if native:
        compiled = BACKEND.emit(lowered, Target("llvm"))
        function = NativeLibrary(compiled.object_code).function(compiled.specs[0])
        _compare("native", expected, _native_results(function, given))


def _function(given: PrimFunc | IRModule) -> PrimFunc:
    if isinstance(given, PrimFunc):
        return given
    functions = [func for func in given.functions.values() if isinstance(func, PrimFunc)]
    return functions[0] if len(functions) == 1 else given["main"]


def _results(function: Callable[..., object], given: Sequence[Argument]) -> list[np.ndarray]:
    copies = [item.copy() if isinstance(item, np.ndarray) else item for item in given]
    function(*copies)
    return [item for item in copies if isinstance(item, np.ndarray)]


def _native_results(function: Callable[..., object], given: Sequence[Argument]) -> list[np.ndarray]:
    arrays = [array(item) if isinstance(item, np.ndarray) else item for item in given]
    function(*arrays)
    return [item.numpy() for item in arrays if hasattr(item, "numpy")]


def _compare(how: str, expected: _Expected, results: list[np.ndarray]) -> None:
    for position, (want, got) in enumerate(zip(expected.results, results, strict=True)):
        if not _is_float(want):
            np.testing.assert_array_equal(got, want, err_msg=f"{how}: argument {position}")
            continue
        wide, other = want.astype("float64"), got.astype("float64")
        known = np.isfinite(wide)  # infinity (the maximum of nothing) and NaN must be equal
        np.testing.assert_array_equal(other[~known], wide[~known], f"{how}: argument {position}")
        scale = _largest(wide)
        worst = float(np.max(np.abs(other[known] - wide[known]), initial=0.0))
        if not worst <= TOLERANCE * scale:
            scale = max(scale, _largest(expected.magnitudes[position].astype("float64")))
        if not worst <= TOLERANCE * scale:
            raise AssertionError(f"{how}: argument {position} differs by {worst} of {scale}")


def _largest(values: np.ndarray) -> float:
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=1e-30))


def assert_schedule_holds(sch: Schedule, original: PrimFunc | IRModule, **options: Any) -> None:
    """The meaning is kept, the state is in order, and the trace makes the module again."""
    sch.state.debug_verify()
    verify_trace_roundtrip(sch, original)
    assert_same_meaning(original, sch.mod, **options)


def child_names(sch: Schedule, around: Any = "root") -> list[str]:
    """The names of the blocks inside a block or loop, in program order."""
    return [sch.get(block).name_hint for block in sch.get_child_blocks(around)]
