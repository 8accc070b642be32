"""Microseconds per simplification of typical index expressions: most of a schedule's time.

Run: ``python benchmarks/simplifier.py``. "fresh" builds a new Analyzer, binds the loops and
simplifies, as a pass does once per block; "warm" simplifies a new expression with an Analyzer that
has seen such ones; "build" is what making the expression itself takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from weft import arith, tir
from weft.ir.expr import PrimExpr, Range

RUNS = 60
REPEATS = 9
i, j, k, x, n, m = (tir.Var(name, "int32") for name in "ijkxnm")
EXTENTS: Final = {i: 4, j: 16, k: 4, x: 7}
fdiv, fmod, fuse = tir.floordiv, tir.floormod, tir.all

TABLE: Final[list[tuple[str, Callable[[], PrimExpr]]]] = [
    ("split, then fuse and take a digit", lambda: fmod(fdiv((i * 16 + j) * 4 + k, 4), 16)),
    ("fused index", lambda: (i * 16 + j) * 4 + k),
    ("outer digit", lambda: fdiv(i * 16 + j, 16)),
    ("inner digit", lambda: fmod(i * 16 + j, 16)),
    ("middle digit", lambda: fdiv(fmod(i * 16 + j, 64), 8)),
    ("digit of a digit", lambda: fmod(i * 16 + j, 8) * 4 + k),
    ("digits fused again", lambda: fdiv(fdiv(i * 16 + j, 4) * 4 + k, 16)),
    ("unaligned digit", lambda: fdiv(x * 5 + k, 4)),
    ("predicate that always holds", lambda: i * 7 + x < 100),
    ("predicate of a split", lambda: i * 16 + j < 60),
    ("two predicates", lambda: fuse(i * 16 + j < 60, k * 7 + x < 26)),
    ("padding", lambda: fuse(i * 16 + j >= 1, i * 16 + j < 57)),
    ("access of a window", lambda: i * 16 + j + k - 1),
    ("symbols cancel", lambda: n * 4 + i * 2 - n * 4),
    ("difference of two indices", lambda: (i * 16 + j + 1) - (i * 16 + j)),
    ("symbolic round up", lambda: fdiv(n + 15, 16) * 16),
    ("symbolic fuse", lambda: fdiv(n * m + j, m)),
    ("extent of a tail", lambda: tir.min(i * 16 + 15, 63) + 1 - i * 16),
    ("clipped index", lambda: tir.max(tir.min(i * 16 + j, 63), 0)),
    ("equality", lambda: tir.EQ(i * 16 + j, tir.IntImm("int32", 5))),
    ("nothing to do", lambda: i * 4 + k),
    ("constant", lambda: fdiv(tir.IntImm("int32", 64), 4)),
]


def analyzer() -> arith.Analyzer:
    """One that knows the loops."""
    made = arith.Analyzer()
    for var, extent in EXTENTS.items():
        made.bind(var, Range(0, extent))
    return made


def microseconds(action: Callable[[int], object]) -> float:
    """The best of some averages over many calls."""
    found = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        for run in range(RUNS):
            action(run)
        found.append((time.perf_counter() - begin) / RUNS * 1e6)
    return min(found)


def row(make: Callable[[], PrimExpr]) -> tuple[float, float, float, str]:
    """(fresh, warm, build, result)."""
    result = str(analyzer().simplify(make()))
    warm = analyzer()
    made = [make() for _ in range(RUNS * REPEATS)]
    calls = iter(made)
    return (
        microseconds(lambda run: analyzer().simplify(made[run])),
        microseconds(lambda _: warm.simplify(next(calls))),
        microseconds(lambda _: make()),
        result,
    )


if __name__ == "__main__":
    print(f"{'':34} {'fresh':>8} {'warm':>8} {'build':>8}")
    rows = [(name, row(make)) for name, make in TABLE]
    for name, (fresh, warm_time, build, result) in rows:
        print(f"{name:34} {fresh:8.1f} {warm_time:8.1f} {build:8.1f}  {result}")
    averages = [sum(figures[column] for _, figures in rows) / len(rows) for column in range(3)]
    print(f"{'average':34} " + " ".join([f"{value:8.1f}" for value in averages]))
    empty = microseconds(lambda _: analyzer())
    print(f"{'(an Analyzer with four loops)':34} {empty:8.1f}")
