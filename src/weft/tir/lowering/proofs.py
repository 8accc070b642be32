"""Proofs that an index stays inside its buffer, from loop bounds and the conditions around it.

``i < n`` is proved as ``i - n + 1 <= 0``. The left side is a polynomial over *atoms*: variables,
and sub-expressions that are no sums or products. To show that it is at most 0,

- loop variables are replaced, the innermost first, by the bound that makes the polynomial largest:
  in ``for i in range(m)``, ``i`` by ``m - 1``, which gives ``m - n``;
- multiples of conditions that hold are subtracted so that a term cancels: ``m <= n``, which is
  ``m - n <= 0``, leaves 0;
- what remains is bounded by constant intervals of the atoms.

Polynomials are over the integers, which do not wrap: a sub-expression that could wrap is an atom.
Where no proof is found a check runs in the program, so that a missing proof never makes it wrong.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Final, NamedTuple

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.polynomials import (
    ONE,
    Poly,
    add_scaled,
    cancelling,
    divided,
    is_beyond,
    multiply,
)
from weft.tir.lowering.ranges import Ranges

_SAME_VALUE: Final = ("tir.likely", "tir.checked")
"""Calls whose value is that of their first argument."""
_MAX_TERMS: Final = 40
"""The most terms of a polynomial for which a proof is tried."""
_MAX_FACTS: Final = 12
"""How many conditions are tried, the latest first."""


class _Quotient(NamedTuple):
    """What an atom ``numerator // divisor`` is made of."""

    numerator: Poly
    divisor: int


class _Extreme(NamedTuple):
    """What an atom ``min(a, b)`` or ``max(a, b)`` is made of."""

    a: Poly
    b: Poly
    is_min: bool


_Parts = _Quotient | _Extreme | None
"""What an atom is made of; None for a variable, and for what is not looked into."""


class Bounds:
    """What is known at a place of a program, and proofs from it.

    Scopes nest: ``mark()`` where one begins, ``rewind(mark)`` where it ends.

    ``fixed_data`` are the data variables (by ``id``) of memory that nothing writes. What reads
    other memory is a new atom at each use: a store may stand between a test of it and its use.
    """

    def __init__(self, ranges: Ranges, fixed_data: frozenset[int] = frozenset()) -> None:
        self.ranges = ranges
        self.fixed_data = fixed_data
        self.facts: list[Poly] = []
        """Polynomials that are at most 0 here."""
        self.loops: list[tuple[int, Poly, Poly]] = []
        """Atoms of variables with their least and their largest value, the outermost loop first."""
        self._atoms: dict[Hashable, int] = {}
        self._info: list[tuple[PrimExpr, _Parts]] = []
        """The expression of each atom, by its number, and what it is made of."""
        self._known: dict[int, tuple[PrimExpr, Poly]] | None = None
        """The polynomials of the parts of the expression that is looked at, by ``id``."""

    # Scopes.

    def mark(self) -> tuple[int, int]:
        """The state to which ``rewind`` goes back."""
        return len(self.facts), len(self.loops)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Forget the facts and loops since ``mark``."""
        del self.facts[mark[0] :]
        del self.loops[mark[1] :]

    def enter_loop(self, var: e.Var, low: PrimExpr, extent: PrimExpr) -> None:
        """Note that ``var`` is in [low, low + extent), so that the extent is at least 1."""
        first, size = self.poly(low), self.poly(extent)
        last = add_scaled(add_scaled(first, size, 1), {(): 1}, -1)
        self.loops.append((self._atom_of_var(var), first, last))
        if () not in size or len(size) > 1:
            self.facts.append(add_scaled({(): 1}, size, -1))

    def define(self, var: e.Var, value: PrimExpr) -> None:
        """Note that ``var`` is ``value``, which is both its bounds, if no step of it may wrap.

        If it is a quotient by a symbolic number, its bounds follow from those of the numerator.
        """
        bounds = self._quotient_bounds(value)
        if bounds is None and not self.is_exact(value):
            return
        low, high = bounds or (self.poly(value),) * 2
        self.loops.append((self._atom_of_var(var), low, high))

    def _quotient_bounds(self, value: PrimExpr) -> tuple[Poly, Poly] | None:
        """The least and the largest value of ``x // d`` or ``x % d``, of a variable and a symbolic
        number; None if they are not known.

        If ``x`` is in [0, d * m), the quotient is in [0, m) and the remainder in [0, d).
        """
        if not isinstance(value, (e.FloorDiv, e.FloorMod)) or isinstance(value.b, IntImm):
            return None
        bounds = [high for atom, _, high in self.loops if atom == self._atoms.get(id(value.a))]
        divisor = self.poly(value.b)
        if not bounds or not self.not_negative(value.a) or not self._divides_extent(divisor):
            return None
        most = divisor
        if isinstance(value, e.FloorDiv):
            quotient = divided(add_scaled(bounds[-1], ONE, 1), divisor)
            if quotient is None:
                return None
            most = quotient
        return {}, add_scaled(most, ONE, -1)

    def _divides_extent(self, divisor: Poly) -> bool:
        """Whether a number, a product, is at least 1 as it divides one that is at least 1.

        No factor of either may be negative.
        """
        for fact in self.facts:
            product = {key: -value for key, value in fact.items() if key}
            if fact.get((), 0) < 1 or len(product) != 1 or divided(product, divisor) is None:
                continue
            [key] = product
            if all(self.ranges.of(self._info[atom][0])[0] >= 0 for atom in key):
                return min(divisor.values()) > 0
        return False

    def assume(self, condition: PrimExpr, holds: bool = True, promised: bool = False) -> None:
        """Note what ``condition`` (where it does not hold: its negation) says about integers.

        A condition in which a step may wrap says nothing about integers without end, unless it is
        ``promised`` (``T.assume``) and not tested.
        """
        if isinstance(condition, e.Call):
            self._assume_call(condition, holds, promised)
        elif isinstance(condition, e.Not):
            self.assume(condition.a, not holds, promised)
        elif isinstance(condition, e.And if holds else e.Or):
            self.assume(condition.a, holds, promised)
            self.assume(condition.b, holds, promised)
        elif isinstance(condition, e.Broadcast):
            self.assume(condition.value, holds, promised)
        elif isinstance(condition, e.CompareExpr) and condition.a.dtype.is_int:
            if promised or self.is_exact(condition):
                self._assume_compare(condition, holds)

    def _assume_call(self, call: e.Call, holds: bool, promised: bool) -> None:
        """``if_then_else(c, x, False)`` is ``c and x``; ``if_then_else(c, True, x)`` is
        ``c or x``.
        """
        name = getattr(call.op, "name", "")
        if name in _SAME_VALUE:
            self.assume(call.args[0], holds, promised)
        if name != "tir.if_then_else":
            return
        condition, *arms = call.args
        for arm, other, is_first in ((arms[0], arms[1], True), (arms[1], arms[0], False)):
            if isinstance(other, IntImm) and bool(other.value) is not holds:
                self.assume(condition, is_first, promised)
                self.assume(arm, holds, promised)

    def is_exact(self, expr: PrimExpr) -> bool:
        """Whether no 64-bit sum or product in an expression may wrap.

        Then its polynomial, over integers without end, is the number that native code computes.
        """
        for term in collect(expr, (e.Add, e.Sub, e.Mul)):
            if term.dtype.bits == 64 and term.dtype.is_int and self.ranges.exact(term) is None:
                return False
        return True

    def _assume_compare(self, condition: e.CompareExpr, holds: bool) -> None:
        if condition.a.dtype.lanes != 1:
            return
        kind = type(condition) if holds else e.OPPOSITE[type(condition)]
        difference = add_scaled(self.poly(condition.a), self.poly(condition.b), -1)
        negated = {key: -value for key, value in difference.items()}
        if kind is e.LT:
            self.facts.append(add_scaled(difference, ONE, 1))
        elif kind is e.LE:
            self.facts.append(difference)
        elif kind is e.GT:
            self.facts.append(add_scaled(negated, ONE, 1))
        elif kind is e.GE:
            self.facts.append(negated)
        elif kind is e.EQ:
            self.facts += [difference, negated]

    # Proofs.

    def below(self, expr: PrimExpr, extent: PrimExpr) -> bool:
        """Whether it is proved that ``expr < extent``."""
        if self.ranges.of(expr)[1] < self.ranges.of(extent)[0]:
            return True
        poly = add_scaled(self.poly(expr), self.poly(extent), -1)
        return self._at_most(add_scaled(poly, {(): 1}, 1))

    def not_negative(self, expr: PrimExpr) -> bool:
        """Whether it is proved that ``expr >= 0``."""
        if self.ranges.of(expr)[0] >= 0:
            return True
        return self._at_most({key: -value for key, value in self.poly(expr).items()})

    def at_most_zero(self, poly: Poly) -> bool:
        """Whether it is proved that ``poly <= 0``."""
        return self._at_most(poly)

    def positive(self, expr: PrimExpr) -> bool:
        """Whether it is proved that ``expr >= 1``."""
        if not self.is_exact(expr):
            return False
        negated = {key: -value for key, value in self.poly(expr).items()}
        return self._at_most(add_scaled(negated, {(): 1}, 1))

    def _at_most(self, poly: Poly, depth: int = 2) -> bool:
        """Whether it is proved that ``poly <= 0``, by bounds or by ``depth`` conditions as well."""
        outer = self._without_loops(poly)
        if outer is not None and self._upper(outer) <= 0:
            return True
        if depth == 0 or len(poly) > _MAX_TERMS:
            return False
        forms = [poly] if outer is None or outer == poly else [poly, outer]
        undivided = self._without_quotient(poly)
        if undivided is not None:
            if self._is_bounded(undivided):
                return True
            forms.append(undivided)
        for fact in self.facts[: -_MAX_FACTS - 1 : -1]:
            for form in forms:
                for factor in cancelling(form, fact):
                    if self._at_most(add_scaled(form, fact, -factor), depth - 1):
                        return True
        return False

    def _is_bounded(self, poly: Poly) -> bool:
        """Whether the bounds of loops and of atoms prove that ``poly <= 0``."""
        outer = self._without_loops(poly)
        return outer is not None and self._upper(outer) <= 0

    def _without_loops(self, poly: Poly) -> Poly | None:
        """A polynomial without loop variables that is at least ``poly``.

        None where it is not known which bound of a variable makes ``poly`` larger.
        """
        for atom, low, high in reversed(self.loops):
            replaced = self._replace(poly, atom, low, high)
            if replaced is None or len(replaced) > _MAX_TERMS:
                return None
            poly = replaced
        return poly

    def _upper(self, poly: Poly) -> int:
        """A number that ``poly``, which has no loop variables, never exceeds."""
        for atom in self._divisions(poly):
            replaced = self._replace_division(poly, atom)
            if replaced is not None:
                outer = self._without_loops(replaced)
                return self._upper(replaced if outer is None else outer)
        return self._constant_upper(poly)

    def _replace(self, poly: Poly, atom: int, low: Poly, high: Poly) -> Poly | None:
        """``poly`` with a variable replaced by the bound that makes it largest.

        With the factor 1 that is ``high``, with -1 it is ``low``. None where the factor, which may
        be a polynomial, is not known to be of one sign, and for squares of the variable.
        """
        coefficient: Poly = {}
        rest: Poly = {}
        for key, value in poly.items():
            count = key.count(atom)
            if count == 0:
                rest[key] = value
            elif count == 1:
                position = key.index(atom)
                coefficient[key[:position] + key[position + 1 :]] = value
            else:
                return None
        if not coefficient:
            return poly
        if low is high:
            return add_scaled(rest, multiply(coefficient, low), 1)
        if self._constant_upper(coefficient) <= 0:
            return add_scaled(rest, multiply(coefficient, low), 1)
        negated = {key: -value for key, value in coefficient.items()}
        if self._constant_upper(negated) <= 0:
            return add_scaled(rest, multiply(coefficient, high), 1)
        return None

    def _divisions(self, poly: Poly) -> list[int]:
        """The atoms of ``poly`` that are quotients by a constant or extremes, the latest first."""
        divisions = {atom for key in poly for atom in key if self._info[atom][1] is not None}
        return sorted(divisions, reverse=True)

    def _without_quotient(self, poly: Poly) -> Poly | None:
        """A polynomial with one quotient ``x // c`` fewer; if it is at most 0, so is ``poly``.

        Where c does not divide the quotient's factor, ``poly`` is scaled by c first: of integers,
        ``p <= 0`` follows from ``c * p <= c - 1``.
        """
        for atom in self._divisions(poly):
            _, parts = self._info[atom]
            factor = poly.get((atom,))
            if not isinstance(parts, _Quotient) or factor is None:
                continue
            scale = 1 if factor % parts.divisor == 0 else parts.divisor
            scaled = {key: value * scale for key, value in poly.items()}
            replaced = self._replace_division(add_scaled(scaled, {(): 1}, 1 - scale), atom)
            if replaced is not None:
                return replaced
        return None

    def _replace_division(self, poly: Poly, atom: int) -> Poly | None:
        """A polynomial that is at least ``poly``, without its one term in a quotient or extreme.

        ``c * (x // c)`` lies in [x - c + 1, x]; ``min(a, b)`` is at most ``a``, and at most ``b``.
        None where the term does not allow that.
        """
        factor = poly.get((atom,))
        if factor is None or sum(atom in key for key in poly) != 1:
            return None
        _, parts = self._info[atom]
        rest = {key: value for key, value in poly.items() if key != (atom,)}
        if isinstance(parts, _Quotient):
            numerator, divisor = parts
            if factor % divisor:
                return None
            if factor < 0:
                numerator = add_scaled(numerator, {(): divisor - 1}, -1)
            return add_scaled(rest, numerator, factor // divisor)
        if parts is None or (factor > 0) != parts.is_min:
            return None
        tries = [add_scaled(rest, side, factor) for side in (parts.a, parts.b)]
        plain = [self._without_loops(side) for side in tries]
        tops = [math.inf if side is None else self._upper(side) for side in plain]
        return tries[1] if tops[1] < tops[0] else tries[0]

    def _constant_upper(self, poly: Poly) -> int:
        """The largest value of a polynomial, given the intervals of its atoms alone."""
        total = 0
        for key, value in poly.items():
            low, high = 1, 1
            for atom in key:
                a, b = self.ranges.of(self._info[atom][0])
                corners = (low * a, low * b, high * a, high * b)
                low, high = min(corners), max(corners)
            total += value * (high if value > 0 else low)
        return total

    # Polynomials.

    def poly(self, expr: PrimExpr) -> Poly:
        """The polynomial of an integer expression."""
        if isinstance(expr, (IntImm, e.Var)):
            return self._compute(expr)
        outer = self._known
        known = self._known = {} if outer is None else outer
        entry = known.get(id(expr))
        if entry is None:
            entry = known[id(expr)] = expr, self._compute(expr)
        self._known = outer
        return entry[1]

    def _compute(self, expr: PrimExpr) -> Poly:
        if isinstance(expr, IntImm):
            return {(): expr.value} if expr.value else {}
        if isinstance(expr, e.Var):
            return {(self._atom_of_var(expr),): 1}
        if isinstance(expr, (e.Add, e.Sub, e.Mul)) and (
            (expr.dtype.bits == 64 and expr.dtype.is_int) or self.ranges.exact(expr) is not None
        ):
            a, b = self.poly(expr.a), self.poly(expr.b)
            if isinstance(expr, e.Mul):
                result = multiply(a, b) if len(a) * len(b) <= _MAX_TERMS else None
            else:
                result = add_scaled(a, b, 1 if isinstance(expr, e.Add) else -1)
            return self._opaque(expr) if result is None or is_beyond(result) else result
        if isinstance(expr, (e.FloorDiv, e.FloorMod, e.Div, e.Mod)):
            return self._quotient(expr)
        if isinstance(expr, e.Cast) and expr.value.dtype.is_integral:
            low, high = self.ranges.of(expr.value)
            if self.ranges.of(expr) == (low, high):
                return self.poly(expr.value)
        if isinstance(expr, (e.Min, e.Max)):
            return self._extreme(expr)
        if isinstance(expr, e.Call) and getattr(expr.op, "name", "") in _SAME_VALUE:
            return self.poly(expr.args[0])
        return self._opaque(expr)

    def _quotient(self, expr: e.BinaryExpr) -> Poly:
        """``x // c`` as an atom ``q``, and ``x % c`` as ``x - c * q``."""
        divisor = expr.b
        if not self.is_exact(expr.a):
            return self._opaque(expr)
        truncating = isinstance(expr, (e.Div, e.Mod))
        if not isinstance(divisor, IntImm) or divisor.value <= 0:
            return self._opaque(expr)
        if truncating and self.ranges.of(expr.a)[0] < 0:
            return self._opaque(expr)
        numerator = self.poly(expr.a)
        is_div = isinstance(expr, (e.FloorDiv, e.Div))
        node = expr if is_div else e.FloorDiv(expr.a, expr.b)
        key = ("//", frozenset(numerator.items()), divisor.value)
        atom = self._atom(key, node, _Quotient(numerator, divisor.value))
        if is_div:
            return {(atom,): 1}
        return add_scaled(numerator, {(atom,): 1}, -divisor.value)

    def _extreme(self, expr: e.Min | e.Max) -> Poly:
        """A minimum or maximum as an atom."""
        if not self.is_exact(expr):
            return self._opaque(expr)
        a, b = self.poly(expr.a), self.poly(expr.b)
        is_min = isinstance(expr, e.Min)
        key = (is_min, frozenset(a.items()), frozenset(b.items()))
        return {(self._atom(key, expr, _Extreme(a, b, is_min)),): 1}

    def _opaque(self, expr: PrimExpr) -> Poly:
        """An expression that is not looked into as an atom."""
        key = id(expr) if self._is_stable(expr) else ("read", len(self._info))
        return {(self._atom(key, expr, None),): 1}

    def _is_stable(self, expr: PrimExpr) -> bool:
        """Whether the expression has the same value at each use: it reads fixed memory only."""
        for node in collect(expr, (BufferLoad, e.Call)):
            if isinstance(node, BufferLoad) and id(node.buffer.data) not in self.fixed_data:
                return False
            if isinstance(node, e.Call) and effect_of(node) > CallEffectKind.Pure:
                return False
        return True

    def _atom_of_var(self, var: e.Var) -> int:
        return self._atom(id(var), var, None)

    def _atom(self, key: Hashable, expr: PrimExpr, parts: _Parts) -> int:
        """The number of an atom; equal keys have the same one."""
        number = self._atoms.get(key)
        if number is None:
            number = self._atoms[key] = len(self._info)
            self._info.append((expr, parts))
        return number
