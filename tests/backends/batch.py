"""Many kernels in one program, run once on a platform and held against the interpreter.

An emulator takes longer to start than a kernel to run, so a batch is one process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.backends.platforms import Platform, Row
from weft.backends.cpu.schedules import Default
from weft.codegen.backend import NativeCode, backend_of
from weft.codegen.build import compile_cached
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.support.errors import RuntimeFault
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.interp import run

GUARD = 64
"""Bytes beside each array, which no function writes."""
MARK = 0xA5


@dataclass(frozen=True)
class Case:
    """A kernel with its arguments, and how far results may differ from the interpreter's."""

    name: str
    func: PrimFunc
    arguments: tuple[np.ndarray, ...]
    tolerance: float = 0.0
    """Relative to the largest result; 0: the same bits (of a NaN: that it is one)."""
    scheduled: bool = False
    """Whether the default schedule for the platform comes first."""
    ulp: float = 0.0
    """Units in the last place by which each result may differ."""


def check(cases: Sequence[Case], platform: Platform, folder: Path) -> None:
    """Run all cases on a platform; AssertionError lists those that differ."""
    places, memory = _laid_out(cases)
    (folder / "before.bin").write_bytes(memory.tobytes())
    lines = platform.run_batch(*_compiled(cases, places, platform), folder).splitlines()
    after = np.frombuffer((folder / "after.bin").read_bytes(), np.uint8)
    wrong = [
        f"{case.name}: {problem}"
        for case, at, line in zip(cases, places, lines, strict=True)
        if (problem := _difference(case, at, line, after))
    ]
    assert not wrong, f"{len(wrong)} of {len(cases)} on {platform.name}:\n" + "\n".join(wrong[:40])


def _laid_out(cases: Sequence[Case]) -> tuple[list[list[int]], np.ndarray]:
    """Where the arguments of each case stand in memory, and that memory."""
    places, size = [], GUARD
    for case in cases:
        row = []
        for array in case.arguments:
            row.append(size)
            size += -(-array.nbytes // 64) * 64 + GUARD
        places.append(row)
    memory = np.full(size, MARK, np.uint8)
    for case, row in zip(cases, places, strict=True):
        for array, at in zip(case.arguments, row, strict=True):
            memory[at : at + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    return places, memory


def _symbol(number: int, name: str) -> str:
    return f"k{number}_" + re.sub(r"\W", "_", name)


def _compiled(
    cases: Sequence[Case], places: Sequence[Sequence[int]], platform: Platform
) -> tuple[NativeCode, list[Row]]:
    """The code of all cases, and how each is called."""
    target = Target(platform.target)
    names = [_symbol(number, case.name) for number, case in enumerate(cases)]
    functions = {}
    for name, case in zip(names, cases, strict=True):
        func = case.func.with_attr("global_symbol", name)
        if case.scheduled:
            schedule = Default().apply(func, target, False)
            func = func if schedule is None else schedule.mod["main"]
        functions[name] = func
    with target:
        lower = Sequential(backend_of(target).lower(target))
        compiled = compile_cached(IRModule(functions), target, lower=lower)
    symbols = {spec.name: spec.native_symbol for spec in compiled.specs}
    rows = [Row(symbols[name], name, tuple(row)) for name, row in zip(names, places, strict=True)]
    return compiled, rows


def _difference(case: Case, at: Sequence[int], line: str, after: np.ndarray) -> str:
    """What a case computed otherwise than the interpreter; nothing if all is the same."""
    expected = [array.copy() for array in case.arguments]
    fault: RuntimeFault | None = None
    try:
        with np.errstate(all="ignore"):
            run(case.func, *expected)
    except RuntimeFault as error:
        fault = error
    said = line.split(maxsplit=2)[2]
    if fault is not None:
        return "" if said.startswith("fault") else f"expected a fault ({fault}), got {said}"
    if said != "done":
        return f"expected a result, got {said}"
    for number, (wanted, begin) in enumerate(zip(expected, at, strict=True)):
        data = after[begin : begin + wanted.nbytes]
        found = np.frombuffer(data.tobytes(), wanted.dtype).reshape(wanted.shape)
        end = begin + wanted.nbytes
        around = np.concatenate([after[begin - GUARD : begin], after[end : end + GUARD]])
        if not (around[:GUARD] == MARK).all() or not (around[-GUARD:] == MARK).all():
            return f"it wrote beside argument {number}"
        problem = _unequal(case, wanted, found)
        if problem:
            return f"argument {number}: {problem}"
    return ""


_DIGITS = {
    "float64": (52, -1074), "float32": (23, -149), "float16": (10, -24), "bfloat16": (7, -133)
}  # fmt: skip
"""Bits of the fraction, and the exponent of the least number."""


def _spacing(values: np.ndarray, dtype: str) -> np.ndarray:
    """The distance of each number to the next one of its type."""
    digits, least = _DIGITS[dtype]
    return np.ldexp(1.0, np.maximum(np.frexp(values)[1] - 1 - digits, least))


def _unequal(case: Case, wanted: np.ndarray, found: np.ndarray) -> str:
    """The first element that differs by more than the case allows."""
    if wanted.dtype.kind in "iub":
        good = wanted == found
    else:
        wide, other = wanted.astype("float64"), found.astype("float64")
        finite = np.abs(wide[np.isfinite(wide)])
        with np.errstate(all="ignore"):
            room = case.tolerance * finite.max(initial=0.0)
            room = room + case.ulp * _spacing(wide, wanted.dtype.name)
            same = (np.abs(wide - other) <= room) | (wide == other)
        good = (same & (np.signbit(wide) == np.signbit(other))) | (np.isnan(wide) & np.isnan(other))
        if case.tolerance or case.ulp:
            good |= same
    if good.all():
        return ""
    place = np.unravel_index(int(np.argmin(good)), good.shape)
    index = tuple(map(int, place))
    inputs = [array[place] for array in case.arguments if array.shape == wanted.shape]
    return (
        f"{np.count_nonzero(~good)} of {good.size} differ, the first at {index}: expected "
        f"{wanted[place]!r}, got {found[place]!r} (arguments there: {inputs[:-1]})"
    )
