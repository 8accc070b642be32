"""Matching of one expression against one pattern, with complete backtracking.

A pattern is a small logic program: for an expression it *expands* into alternatives, each a list of
goals (pattern, expression) that must all hold. ``Matcher.solutions`` solves goals depth first. Like
the Warren Abstract Machine for Prolog (Aït-Kaci, "Warren's Abstract Machine", 1991, chapter 4), it
keeps a stack of choice points, and a trail that says how to undo what was bound since each of them.
So it finds every solution, in a fixed order, without recursion.

Invariants: in one match, a pattern object is bound to one expression, wherever it occurs in the
pattern; a goal that fails leaves nothing bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple, Self, TypeVar

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.functor import collect, substitute
from weft.ir.structural import structural_equal
from weft.relax.expr import Expr, PrimValue, SeqExpr, ShapeExpr, StringImm, Var
from weft.relax.ir.lattice import BaseCheckResult, match_params, struct_info_base_check
from weft.relax.ir.shape_arith import same_dim
from weft.relax.struct_info import StructInfo
from weft.tir.expr import Var as TirVar

Goal = tuple["Pattern", RelaxExpr]
Alternative = tuple[Goal, ...]

BY_VALUE = (ShapeExpr, PrimValue, StringImm)
"""Expressions that are compared by value, not by identity."""


_Goals = tuple[Goal, "_Goals"] | None
"""The goals that are left, as a linked list, so that choice points can share its end."""
K = TypeVar("K")
V = TypeVar("V")


class Site(NamedTuple):
    """The expression against which a pattern is matched."""

    expr: RelaxExpr
    """The expression itself, perhaps a variable."""
    value: RelaxExpr
    """The value that the variable is bound to, or the expression itself."""
    matcher: Matcher


class Pattern:
    """The interface between a matcher and a pattern; the module ``kinds`` has the patterns."""

    __slots__ = ()

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        """The alternative lists of goals under which the pattern matches an expression."""
        raise NotImplementedError(f"{type(self).__name__} is not a complete pattern")

    def subject(self, at: Site) -> RelaxExpr | None:
        """The expression to which a match binds the pattern; None if it binds nothing.

        By default the value of a variable, not the variable.
        """
        return at.value

    def dup(self, copies: dict[Pattern, Pattern] | None = None) -> Self:
        """A copy of the pattern and of all patterns in it.

        ``copies`` (old to new) is for copying several patterns that share parts.
        """
        known = {} if copies is None else copies
        if self not in known:
            copy = object.__new__(type(self))
            for name in _slots(type(self)):
                setattr(copy, name, _copied(getattr(self, name), known))
            known[self] = copy
        copied = known[self]
        assert isinstance(copied, type(self))
        return copied


def _slots(cls: type) -> Iterator[str]:
    return itertools.chain.from_iterable(vars(base).get("__slots__", ()) for base in cls.__mro__)


def _copied(part: object, copies: dict[Pattern, Pattern]) -> object:
    if isinstance(part, Pattern):
        return part.dup(copies)
    if isinstance(part, tuple) and any(isinstance(item, Pattern) for item in part):
        return tuple(_copied(item, copies) for item in part)
    return part


def same_expr(lhs: object, rhs: object) -> bool:
    """Whether two operands are the same expression."""
    if lhs is rhs:
        return True
    return type(lhs) is type(rhs) and isinstance(lhs, BY_VALUE) and structural_equal(lhs, rhs)


class Matcher:
    """The state of a match: what patterns and symbolic variables are bound to.

    ``var2val`` is not copied, so its owner may add to it; ``inner`` holds the bindings inside of
    functions that were matched.
    """

    def __init__(self, var2val: Mapping[Var, Expr] | None = None) -> None:
        self.var2val: Mapping[Var, Expr] = {} if var2val is None else var2val
        self.inner: dict[Var, Expr] = {}
        self.bound: dict[Pattern, RelaxExpr] = {}
        self.symbols: dict[TirVar, PrimExpr] = {}
        self.failure: tuple[Pattern, RelaxExpr] | None = None
        self._reached = -1
        self._pending: list[tuple[StructInfo, StructInfo]] = []
        self._trail: list[Callable[[], object]] = []
        """Functions that undo what was bound, in the order of binding."""

    def value_of(self, expr: RelaxExpr) -> RelaxExpr:
        """The value of a variable, followed through renamings and sequences without bindings."""
        while True:
            if isinstance(expr, Var):
                value = self.var2val.get(expr)
                if value is None:
                    value = self.inner.get(expr)
                if value is None:
                    return expr
                expr = value
            elif isinstance(expr, SeqExpr) and not expr.blocks:
                expr = expr.body
            else:
                return expr

    def solutions(self, *goals_to_solve: Goal) -> Iterator[None]:
        """Yield once for each solution of all goals; its bindings stay until the next step."""
        start = len(self._trail)
        choices: list[tuple[int, _Goals]] = [(start, _push(goals_to_solve, None))]
        while choices:
            mark, goals = choices.pop()
            self._undo(mark)
            while goals is not None:
                (goal, where), goals = goals
                alternatives = self._step(goal, where)
                if not alternatives:
                    break
                mark = len(self._trail)
                choices.extend((mark, _push(way, goals)) for way in reversed(alternatives[1:]))
                goals = _push(alternatives[0], goals)
            else:
                if self._pending_hold():
                    yield
        self._undo(start)

    def first(self, pattern: Pattern, expr: RelaxExpr) -> bool:
        """Whether the pattern matches; the bindings of the first match stay."""
        return any(True for _ in self.solutions((pattern, expr)))

    def refutes(self, pattern: Pattern, expr: RelaxExpr) -> bool:
        """Whether there is no match with the present bindings; binds nothing."""
        mark, kept = len(self._trail), (self.failure, self._reached)
        matches = self.first(pattern, expr)
        self._undo(mark)
        self.failure, self._reached = kept
        return not matches

    def _step(self, pattern: Pattern, expr: RelaxExpr) -> tuple[Alternative, ...]:
        at = Site(expr, self.value_of(expr), self)
        subject = pattern.subject(at)
        known = self.bound.get(pattern)
        if known is not None:
            alternatives: tuple[Alternative, ...] = ((),) if same_expr(known, subject) else ()
        else:
            alternatives = pattern.expand(at)
            if alternatives and subject is not None:
                self._bind(self.bound, pattern, subject)
        if not alternatives and len(self._trail) > self._reached:
            self._reached, self.failure = len(self._trail), (pattern, at.value)
        return alternatives

    def _bind(self, table: dict[K, V], key: K, value: V) -> None:
        table[key] = value
        self._trail.append(partial(table.__delitem__, key))

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            self._trail.pop()()

    def unify(self, info: StructInfo, actual: StructInfo) -> bool:
        """Whether ``actual`` matches the struct info ``info``; binds its symbolic variables.

        A symbolic variable of the pattern is bound to one dimension. Dimensions with variables that
        are not bound yet are compared when the match is complete.
        """
        symbols = collect(info, TirVar)
        if not symbols:
            return struct_info_base_check(info, actual) == BaseCheckResult.PASS
        for symbol, dim in match_params([info], [actual]).items():
            known = self.symbols.get(symbol)
            if known is None:
                self._bind(self.symbols, symbol, dim)
            elif not same_dim(known, dim):
                return False
        if all(symbol in self.symbols for symbol in symbols):
            return self._holds(info, actual)
        self._pending.append((info, actual))
        self._trail.append(self._pending.pop)
        open_info = info if not self.symbols else substitute(info, self.symbols)
        return struct_info_base_check(open_info, actual) != BaseCheckResult.FAIL_L0

    def _holds(self, info: StructInfo, actual: StructInfo) -> bool:
        wanted = substitute(info, self.symbols)
        return struct_info_base_check(wanted, actual) == BaseCheckResult.PASS

    def _pending_hold(self) -> bool:
        return all(self._holds(info, actual) for info, actual in self._pending)


def _push(goals: Alternative, rest: _Goals) -> _Goals:
    for goal in reversed(goals):
        rest = (goal, rest)
    return rest
