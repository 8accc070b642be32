"""Proofs that an index stays inside its buffer, from loop bounds and the conditions around it.

An index minus its extent is written as a polynomial over *atoms* (variables, and sub-expressions
that are not sums or products). Loop variables are replaced, innermost first, by the bound that
makes the polynomial largest; conditions that hold (``p <= 0``) are added in multiples that cancel a
term. What remains is bounded by constant intervals. Everything is over the integers: a sub-
expression that could wrap is an atom. No proof means a run-time check, never a wrong program.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.node import Node
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.ranges import Ranges

Monomial = tuple[int, ...]
Poly = dict[Monomial, int]
_ONE: Final[Poly] = {(): 1}
_SAME_VALUE: Final = ("tir.likely", "tir.checked")
"""Calls whose value is that of their first argument."""
_MAX_TERMS: Final = 40
_MAX_FACTS: Final = 12


def add_scaled(a: Poly, b: Poly, factor: int) -> Poly:
    """a + factor * b."""
    result = dict(a)
    for key, value in b.items():
        total = result.get(key, 0) + factor * value
        if total:
            result[key] = total
        else:
            result.pop(key, None)
    return result


def multiply(a: Poly, b: Poly) -> Poly:
    """a * b."""
    result: Poly = {}
    for key_a, value_a in a.items():
        for key_b, value_b in b.items():
            key = tuple(sorted(key_a + key_b))
            total = result.get(key, 0) + value_a * value_b
            if total:
                result[key] = total
            else:
                result.pop(key, None)
    return result


class Bounds:
    """The facts in scope. Scopes nest: ``mark()`` before, ``rewind(mark)`` after.

    ``fixed_data`` are the data variables (by ``id``) that nothing writes. An expression that reads
    other memory is a new atom each time: a store may stand between a test and a use of it.
    """

    def __init__(self, ranges: Ranges, fixed_data: frozenset[int] = frozenset()) -> None:
        self.ranges = ranges
        self.fixed_data = fixed_data
        self.facts: list[Poly] = []
        self.loops: list[tuple[int, Poly, Poly]] = []
        self._atoms: dict[Any, int] = {}
        self._info: list[tuple[PrimExpr, str, Any]] = []
        self._kept: list[Node] = []
        self._known: dict[int, tuple[PrimExpr, Poly]] | None = None
        """Polynomials of the parts of the outermost expression that is looked at."""

    # Scopes.

    def mark(self) -> tuple[int, int]:
        """What ``rewind`` takes back to."""
        return len(self.facts), len(self.loops)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Forget the facts and loops since ``mark``."""
        del self.facts[mark[0] :]
        del self.loops[mark[1] :]

    def enter_loop(self, var: e.Var, low: PrimExpr, extent: PrimExpr) -> None:
        """``var`` is in [low, low + extent), and so extent >= 1."""
        first, size = self.poly(low), self.poly(extent)
        last = add_scaled(add_scaled(first, size, 1), {(): 1}, -1)
        self.loops.append((self._atom_of_var(var), first, last))
        if () not in size or len(size) > 1:
            self.facts.append(add_scaled({(): 1}, size, -1))

    def define(self, var: e.Var, value: PrimExpr) -> None:
        """``var`` is ``value``: both bounds are that value, if no step of it may wrap."""
        if not self.is_exact(value):
            return
        poly = self.poly(value)
        self.loops.append((self._atom_of_var(var), poly, poly))

    def assume(self, condition: PrimExpr, holds: bool = True, promised: bool = False) -> None:
        """Add what ``condition`` (or its negation) says about integers.

        A condition that was tested, not ``promised``, says nothing where a step of it may wrap.
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
        """``if_then_else(c, x, False)`` is ``c and x``; with ``True`` first it is an ``or``."""
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

    def is_exact(self, expr: Any) -> bool:
        """Whether no 64-bit sum or product in an expression may wrap: then its polynomial, which is
        over all integers, is the number that native code computes.
        """
        for term in collect(expr, (e.Add, e.Sub, e.Mul)):
            if term.dtype.bits == 64 and term.dtype.is_int and self.ranges.exact(term) is None:
                return False
        return True

    def _assume_compare(self, condition: Any, holds: bool) -> None:
        if condition.a.dtype.lanes != 1:
            return
        kind = type(condition)
        if not holds:
            kind = {e.LT: e.GE, e.GE: e.LT, e.GT: e.LE, e.LE: e.GT, e.NE: e.EQ}.get(kind, e.NE)
        difference = add_scaled(self.poly(condition.a), self.poly(condition.b), -1)
        negated = {key: -value for key, value in difference.items()}
        if kind is e.LT:
            self.facts.append(add_scaled(difference, _ONE, 1))
        elif kind is e.LE:
            self.facts.append(difference)
        elif kind is e.GT:
            self.facts.append(add_scaled(negated, _ONE, 1))
        elif kind is e.GE:
            self.facts.append(negated)
        elif kind is e.EQ:
            self.facts += [difference, negated]

    # Proofs.

    def below(self, expr: PrimExpr, extent: PrimExpr) -> bool:
        """Whether expr < extent is proved."""
        if self.ranges.of(expr)[1] < self.ranges.of(extent)[0]:
            return True
        poly = add_scaled(self.poly(expr), self.poly(extent), -1)
        return self._at_most(add_scaled(poly, {(): 1}, 1))

    def not_negative(self, expr: PrimExpr) -> bool:
        """Whether expr >= 0 is proved."""
        if self.ranges.of(expr)[0] >= 0:
            return True
        return self._at_most({key: -value for key, value in self.poly(expr).items()})

    def at_most_zero(self, poly: Poly) -> bool:
        """Whether poly <= 0 is proved."""
        return self._at_most(poly)

    def positive(self, expr: PrimExpr) -> bool:
        """Whether expr >= 1 is proved."""
        if not self.is_exact(expr):
            return False
        negated = {key: -value for key, value in self.poly(expr).items()}
        return self._at_most(add_scaled(negated, {(): 1}, 1))

    def _at_most(self, poly: Poly, depth: int = 2) -> bool:
        """Whether poly <= 0 is proved: by bounds alone, or with a multiple of a fact."""
        outer = self._without_loops(poly)
        if outer is not None and self._upper(outer) <= 0:
            return True
        if depth == 0 or len(poly) > _MAX_TERMS:
            return False
        forms = [poly] if outer is None or outer == poly else [poly, outer]
        undivided = self._without_quotient(poly)
        if undivided is not None:
            forms.append(undivided)
        for fact in self.facts[: -_MAX_FACTS - 1 : -1]:
            for form in forms:
                for factor in _factors(form, fact):
                    if self._at_most(add_scaled(form, fact, -factor), depth - 1):
                        return True
        return False

    def _without_loops(self, poly: Poly) -> Poly | None:
        """poly with every loop variable replaced by a bound, or None where its sign is unknown."""
        for atom, low, high in reversed(self.loops):
            replaced = self._replace(poly, atom, low, high)
            if replaced is None or len(replaced) > _MAX_TERMS:
                return None
            poly = replaced
        return poly

    def _upper(self, poly: Poly) -> int:
        """A constant that poly, which has no loop variables, never exceeds."""
        for atom in self._divisions(poly):
            replaced = self._replace_division(poly, atom)
            if replaced is not None:
                outer = self._without_loops(replaced)
                return self._upper(replaced if outer is None else outer)
        return self._constant_upper(poly)

    def _replace(self, poly: Poly, atom: int, low: Poly, high: Poly) -> Poly | None:
        """Put the bound of ``atom`` that makes ``poly`` largest in its place."""
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
        """The atoms of ``poly`` that are quotients by a constant or extremes."""
        divisions = {atom for key in poly for atom in key if self._info[atom][1]}
        return sorted(divisions, reverse=True)

    def _without_quotient(self, poly: Poly) -> Poly | None:
        """A polynomial whose being <= 0 implies the same of ``poly``, one quotient x // c fewer.

        Where c does not divide the quotient's factor, ``poly`` is scaled by c first: for integers,
        p <= 0 follows from c*p <= c - 1.
        """
        for atom in self._divisions(poly):
            _, kind, data = self._info[atom]
            factor = poly.get((atom,))
            if kind != "//" or factor is None:
                continue
            scale = 1 if factor % data[1] == 0 else data[1]
            scaled = {key: value * scale for key, value in poly.items()}
            replaced = self._replace_division(add_scaled(scaled, {(): 1}, 1 - scale), atom)
            if replaced is not None:
                return replaced
        return None

    def _replace_division(self, poly: Poly, atom: int) -> Poly | None:
        """Bound the one linear term of a quotient q = x // c by c*q in [x - c + 1, x]."""
        factor = poly.get((atom,))
        if factor is None or sum(atom in key for key in poly) != 1:
            return None
        _, kind, data = self._info[atom]
        rest = {key: value for key, value in poly.items() if key != (atom,)}
        if kind == "//":
            numerator, divisor = data
            if factor % divisor:
                return None
            if factor < 0:
                numerator = add_scaled(numerator, {(): divisor - 1}, -1)
            return add_scaled(rest, numerator, factor // divisor)
        one, other, is_min = data
        if (factor > 0) != is_min:
            return None
        tries = [add_scaled(rest, side, factor) for side in (one, other)]
        tops = [self._upper(side) for side in tries]
        return tries[1] if tops[1] < tops[0] else tries[0]

    def _constant_upper(self, poly: Poly) -> int:
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
        if isinstance(expr, IntImm | e.Var):
            return self._compute(expr)
        outer = self._known
        known = self._known = {} if outer is None else outer
        found = known.get(id(expr))
        if found is None:
            found = known[id(expr)] = expr, self._compute(expr)
        self._known = outer
        return found[1]

    def _compute(self, expr: PrimExpr) -> Poly:
        if isinstance(expr, IntImm):
            return {(): expr.value} if expr.value else {}
        if isinstance(expr, e.Var):
            return {(self._atom_of_var(expr),): 1}
        if isinstance(expr, e.Add | e.Sub | e.Mul) and (
            (expr.dtype.bits == 64 and expr.dtype.is_int) or self.ranges.exact(expr) is not None
        ):
            a, b = self.poly(expr.a), self.poly(expr.b)
            if isinstance(expr, e.Mul):
                result = multiply(a, b) if len(a) * len(b) <= _MAX_TERMS else None
            else:
                result = add_scaled(a, b, 1 if isinstance(expr, e.Add) else -1)
            return self._opaque(expr) if result is None or _is_beyond(result) else result
        if isinstance(expr, e.FloorDiv | e.FloorMod | e.Div | e.Mod):
            return self._quotient(expr)
        if isinstance(expr, e.Cast) and expr.value.dtype.is_integral:
            low, high = self.ranges.of(expr.value)
            if self.ranges.of(expr) == (low, high):
                return self.poly(expr.value)
        if isinstance(expr, e.Min | e.Max):
            return self._extreme(expr)
        if isinstance(expr, e.Call) and getattr(expr.op, "name", "") in _SAME_VALUE:
            return self.poly(expr.args[0])
        return self._opaque(expr)

    def _quotient(self, expr: Any) -> Poly:
        """x // c as an atom q, x % c as x - c*q."""
        divisor = expr.b
        if not self.is_exact(expr.a):
            return self._opaque(expr)
        truncating = isinstance(expr, e.Div | e.Mod)
        if not isinstance(divisor, IntImm) or divisor.value <= 0:
            return self._opaque(expr)
        if truncating and self.ranges.of(expr.a)[0] < 0:
            return self._opaque(expr)
        numerator = self.poly(expr.a)
        is_div = isinstance(expr, e.FloorDiv | e.Div)
        node = expr if is_div else e.FloorDiv(expr.a, expr.b)
        key = ("//", frozenset(numerator.items()), divisor.value)
        atom = self._atom(key, node, "//", (numerator, divisor.value))
        if is_div:
            return {(atom,): 1}
        return add_scaled(numerator, {(atom,): 1}, -divisor.value)

    def _extreme(self, expr: Any) -> Poly:
        if not self.is_exact(expr):
            return self._opaque(expr)
        a, b = self.poly(expr.a), self.poly(expr.b)
        is_min = isinstance(expr, e.Min)
        key = (is_min, frozenset(a.items()), frozenset(b.items()))
        return {(self._atom(key, expr, "extreme", (a, b, is_min)),): 1}

    def _opaque(self, expr: PrimExpr) -> Poly:
        key: Any = id(expr) if self._is_stable(expr) else ("read", len(self._info))
        return {(self._atom(key, expr, "", None),): 1}

    def _is_stable(self, expr: PrimExpr) -> bool:
        """Whether the expression has one value wherever its variables have theirs."""
        for node in collect(expr, (BufferLoad, e.Call)):
            if isinstance(node, BufferLoad) and id(node.buffer.data) not in self.fixed_data:
                return False
            if isinstance(node, e.Call) and effect_of(node) > CallEffectKind.Pure:
                return False
        return True

    def _atom_of_var(self, var: e.Var) -> int:
        return self._atom(id(var), var, "", None)

    def _atom(self, key: Any, expr: PrimExpr, kind: str, data: Any) -> int:
        found = self._atoms.get(key)
        if found is None:
            found = self._atoms[key] = len(self._info)
            self._info.append((expr, kind, data))
        return found


def _is_beyond(poly: Poly) -> bool:
    """Whether it is a constant that has wrapped, or has a factor that is in no type."""
    return any(abs(value) >= 1 << 63 for value in poly.values())


def _factors(poly: Poly, fact: Poly) -> list[int]:
    """Positive multiples of ``fact`` that cancel a term of ``poly``."""
    found: list[int] = []
    for key, value in fact.items():
        mine = poly.get(key, 0)
        if key and mine and mine % value == 0 and mine // value > 0:
            factor = mine // value
            if factor not in found:
                found.append(factor)
    return found[:3]
