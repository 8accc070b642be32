"""Sizes of memory as code that knows whether its own arithmetic wrapped.

``m * n`` elements are no memory at all where the product wraps to 0, and then every access that is
proved by ``i < m`` and ``j < n`` lies outside. So sums and products in a size are tested each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.sharing import parts_of
from weft.runtime.call.abi import FaultKind
from weft.tir import expr as e
from weft.tir.lowering.building import constant_of

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter

_MIXED: Final = (e.Min, e.Max, e.FloorDiv, e.FloorMod, e.Div, e.Mod)
_CHECKED: Final[dict[type, str]] = {e.Add: "sadd", e.Sub: "ssub", e.Mul: "smul"}


def exact_index(em: Emitter, expr: PrimExpr, wrapped: Callable[[str], None]) -> str:
    """The operand of a size as i64; ``wrapped`` takes a flag (i1) for each step that may wrap,
    inside of quotients and extremes too.
    """
    return _Exact(em, wrapped).index(expr)


class _Exact:
    """One expression: what was emitted of it, each object once."""

    def __init__(self, em: Emitter, wrapped: Callable[[str], None]) -> None:
        self.em, self.wrapped = em, wrapped
        self.emitted: dict[int, str] = {}

    def index(self, expr: PrimExpr) -> str:
        """The operand as i64."""
        if not _may_wrap(expr):
            self.of_sides(expr)
            return self.em.extent(expr)
        bits = expr.dtype.bits
        value = self.value(expr)
        return value if bits == 64 else self.em.b.op(f"sext i{bits} {value} to i64")

    def value(self, expr: Any) -> str:
        """The operand in the expression's own type."""
        known = self.emitted.get(id(expr))
        if known is None:
            known = self.emitted[id(expr)] = self.computed(expr)
        return known

    def computed(self, expr: Any) -> str:
        if not _may_wrap(expr):
            self.of_sides(expr)
            plain: str = self.em.value(self.em.guarded(expr))
            return plain
        a, b = self.value(expr.a), self.value(expr.b)
        return checked(self.em, _CHECKED[type(expr)], f"i{expr.dtype.bits}", a, b, self.wrapped)

    def of_sides(self, expr: Any) -> None:
        """The flags of what a quotient, an extreme or a cast is computed of."""
        for side in _sides(expr):
            self.value(side)


def exact_bound(em: Emitter, expr: PrimExpr) -> str:
    """The operand of a loop's bound as i64; a sum or product in it that wraps is a fault."""
    if expr.dtype.bits != 64 or em.bounds.is_exact(expr):
        return em.extent(expr)
    flags: list[str] = []
    value = exact_index(em, expr, flags.append)
    for flag in flags:
        text = f"{em.function.name}: a loop's bound does not fit in 64 bits"
        em.b.raise_unless(em.b.op(f"xor i1 {flag}, true"), FaultKind.INDEX, text)
    return value


def test_extent(em: Emitter, expr: PrimExpr) -> None:
    """Raise where a sum or product inside an extent of a parameter wraps, if that matters.

    Who calls the function compares the extent as numbers without width. Sums and products are the
    same modulo 2**64 there and here; a quotient, an extreme or a choice of one that wraps is not:
    ``max(p * q, 1)`` may be 1 for the caller and 5 here. In 32 bits, ``n + 70000`` may be negative.
    """
    is_short = _may_wrap(expr) and expr.dtype.bits < 64 and em.ranges.exact(expr) is None
    for term in [expr] if is_short else _decisive(expr):
        if not is_short and em.bounds.is_exact(term):
            continue
        flags: list[str] = []
        _Exact(em, flags.append).value(term)
        for flag in flags:
            text = f"{em.function.name}: an extent of a parameter does not fit in its type"
            em.b.raise_unless(em.b.op(f"xor i1 {flag}, true"), FaultKind.INDEX, text)


def _decisive(root: Any) -> list[PrimExpr]:
    """The largest sums and products whose number counts, not only its lowest 64 bits."""
    found: list[PrimExpr] = []
    seen: set[tuple[int, bool]] = set()
    waiting = [(root, True)]
    while waiting:
        expr, is_ring = waiting.pop()
        if isinstance(expr, e.Var | IntImm) or (id(expr), is_ring) in seen:
            continue
        seen.add((id(expr), is_ring))
        if type(expr) in _CHECKED and not is_ring:
            found.append(expr)
            continue
        below = is_ring and type(expr) in _CHECKED
        parts = [part for part in parts_of(expr) if isinstance(part, PrimExpr)]
        waiting += [(part, below) for part in reversed(parts)]
    return found


def _sides(expr: Any) -> list[PrimExpr]:
    """What quotients, extremes and casts of integers are computed of."""
    if isinstance(expr, _MIXED) and expr.dtype.is_int:
        return [expr.a, expr.b]
    if isinstance(expr, e.Cast) and expr.dtype.is_int and expr.value.dtype.is_int:
        return [expr.value]
    return []


def checked(
    em: Emitter, operation: str, kind: str, a: str, b: str, wrapped: Callable[[str], None]
) -> str:
    """``sadd``, ``ssub``, ``smul`` or ``umul`` of two operands of an LLVM integer type.

    ``wrapped`` takes the flag (i1) that says whether the result does not fit.
    """
    name = f"llvm.{operation}.with.overflow.{kind}"
    pair = em.b.call(name, f"{{ {kind}, i1 }}", [(kind, a), (kind, b)])
    wrapped(em.b.op(f"extractvalue {{ {kind}, i1 }} {pair}, 1"))
    return em.b.op(f"extractvalue {{ {kind}, i1 }} {pair}, 0")


def _may_wrap(expr: Any) -> bool:
    return (
        type(expr) in _CHECKED
        and expr.dtype.is_int
        and expr.dtype.bits in (32, 64)
        and constant_of(expr) is None
    )
