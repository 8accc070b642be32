"""Tests that no step of a size wraps.

An allocation of ``m * n`` elements has no memory at all where the product wraps to 0; and then each
access that is proved by ``i < m`` and ``j < n`` lies outside of it. So the steps of a size are
tested, all together, by one ``T.is_exact``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.tir import expr as e
from weft.tir.exact_steps import exact_steps
from weft.tir.intrinsic import checked, is_exact
from weft.tir.lowering.building import Names, all_of, constant_of, times, wide
from weft.tir.lowering.faults import DIVISIONS
from weft.tir.lowering.proofs import Bounds

LARGEST_MEMORY: Final = 1 << 47
"""More bytes than any allocation can have."""
_STEPS: Final = (e.Add, e.Sub, e.Mul, e.Min, e.Max)


@dataclass(frozen=True, eq=False)
class Test:
    """A condition on sizes, the variables that it uses, and the message where it does not hold."""

    names: Names
    condition: PrimExpr
    kind: str
    message: str
    numbers: Sequence[PrimExpr] = ()

    def around(self, value: PrimExpr) -> PrimExpr:
        """``value`` in a ``T.checked`` of the condition, with its variables defined around it."""
        return self.names.around(
            checked(value, self.condition, self.kind, self.message, *self.numbers)
        )


@dataclass
class Sizes:
    """Writes sizes as int64 for a test, and collects the conditions under which they are right.

    The test must not fault by itself. So a division in a size, or a load, gets a variable before
    it: later passes guard it where it is defined, and that its operands do not wrap becomes a
    condition.
    """

    names: Names = field(default_factory=Names)
    conditions: list[PrimExpr] = field(default_factory=list)
    _written: dict[int, tuple[PrimExpr, PrimExpr]] = field(default_factory=dict)

    def number(self, size: PrimExpr) -> PrimExpr:
        """The size as int64. Whether it wraps is for the caller to ask (``need_exact``)."""
        return wide(self._form(size))

    def need(self, condition: PrimExpr) -> None:
        """Add a condition; a constant that is true is left out."""
        if constant_of(condition) != 1:
            self.conditions.append(condition)

    def need_exact(self, *numbers: PrimExpr) -> None:
        """Add the condition that no step of these sizes, which ``number`` gave, wraps."""
        self.conditions += [is_exact(number) for number in numbers if exact_steps(number)]

    def test(self, kind: str, message: str, *numbers: PrimExpr) -> Test:
        """The test of all conditions; there must be one at least."""
        return Test(self.names, all_of(self.conditions), kind, message, numbers)

    def _form(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, (e.Var, IntImm)):
            return expr
        known = self._written.get(id(expr))
        if known is None:
            known = self._written[id(expr)] = expr, self._write(expr)
        return known[1]

    def _write(self, expr: PrimExpr) -> PrimExpr:
        if isinstance(expr, e.Cast) and expr.dtype.is_integral and expr.value.dtype.is_integral:
            return expr.with_(value=self._form(expr.value))
        if not isinstance(expr, _STEPS + DIVISIONS) or not expr.dtype.is_integral:
            return self.names.of("size", expr)
        a, b = self._form(expr.a), self._form(expr.b)
        written = expr if a is expr.a and b is expr.b else expr.with_(a=a, b=b)
        if isinstance(expr, _STEPS) or (constant_of(b) or 0) > 0:
            return written
        self.need_exact(a, b)
        return self.names.of("quotient", written)


def exact_bound(bounds: Bounds, bound: PrimExpr) -> PrimExpr:
    """The bound of a loop, in a test if a step of it may wrap."""
    if bound.dtype.bits != 64 or bounds.is_exact(bound):
        return bound
    sizes = Sizes()
    number = sizes.number(bound)
    sizes.need_exact(number)
    if not sizes.conditions:
        return bound
    return sizes.test("index", "a loop's bound does not fit in 64 bits").around(number)


def allocation_test(name: str, extents: Sequence[PrimExpr], nbytes: int) -> Test | None:
    """The test that memory for so many elements of ``nbytes`` bytes can be had.

    None for constant extents, which code generation looks at.
    """
    if all(constant_of(extent) is not None for extent in extents):
        return None
    sizes = Sizes()
    total: PrimExpr = IntImm("int64", nbytes)
    for extent in extents:
        number = sizes.number(extent)
        if constant_of(extent) is None:
            sizes.need(e.LE(IntImm("int64", 0), number))
        total = times(total, number)
    sizes.need_exact(total)
    sizes.need(e.LE(total, IntImm("int64", LARGEST_MEMORY)))
    return sizes.test("allocation", f"cannot allocate {{a}} bytes for {name}", total)


def parameter_tests(bounds: Bounds, extent: PrimExpr) -> list[Test]:
    """Tests that no step inside an extent of a parameter wraps, where that matters.

    The caller has compared this extent with that of the array, in integers that do not wrap. A sum
    or product that wraps here has the lowest 64 bits of the caller's, which is enough. A quotient,
    a minimum or a choice of one that wraps has not: ``max(p * q, 1)`` may be 1 for the caller and 5
    here. And in 32 bits ``n + 70000`` may be negative here.
    """
    is_short = (
        isinstance(extent, (e.Add, e.Sub, e.Mul))
        and extent.dtype.bits < 64
        and bounds.ranges.exact(extent) is None
    )
    tests = []
    for term in [extent] if is_short else _decisive(extent):
        if not is_short and bounds.is_exact(term):
            continue
        sizes = Sizes()
        sizes.need_exact(sizes.number(term))
        if sizes.conditions:
            text = "an extent of a parameter does not fit in its type"
            tests.append(sizes.test("index", text))
    return tests


def _decisive(root: PrimExpr) -> list[PrimExpr]:
    """The outermost sums and products of which more than the lowest 64 bits matter.

    They are those inside a quotient, a minimum or a choice: of ``max(p * q + 1, 1) * r`` it is
    ``p * q + 1``.
    """
    decisive: list[PrimExpr] = []
    seen: set[tuple[int, bool]] = set()
    waiting = [(root, True)]
    while waiting:
        expr, is_ring = waiting.pop()
        if isinstance(expr, (e.Var, IntImm)) or (id(expr), is_ring) in seen:
            continue
        seen.add((id(expr), is_ring))
        is_step = isinstance(expr, (e.Add, e.Sub, e.Mul))
        if is_step and not is_ring:
            decisive.append(expr)
            continue
        parts = [part for part in expr._parts_() if isinstance(part, PrimExpr)]
        waiting += [(part, is_ring and is_step) for part in reversed(parts)]
    return decisive
