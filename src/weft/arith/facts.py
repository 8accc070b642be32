"""What an Analyzer knows: ranges and values of variables, constraints, and its memo tables.

Every analysis reads these facts and memoises results by the identity of the expression. A new fact
empties the tables, unless it is about a variable that no memoised result has looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from weft.arith.linear_form import Form
from weft.ir.expr import PrimExpr, Range
from weft.support.dtype import DataType
from weft.tir.expr import Var

INT32: Final = DataType("int32")
INT64: Final = DataType("int64")

T = TypeVar("T")
Memo = dict[int, tuple[PrimExpr, T]]
"""id of an expression -> (the expression, which keeps the id in use; the result)."""


def is_index(dtype: DataType) -> bool:
    """Whether a type is an index type: its arithmetic is assumed not to overflow."""
    return dtype is INT32 or dtype is INT64


@dataclass(slots=True)
class Facts:
    """The knowledge and the memo tables of one Analyzer."""

    bounds: dict[Var, tuple[int, int]] = field(default_factory=dict)
    modular: dict[Var, tuple[int, int]] = field(default_factory=dict)
    values: dict[Var, PrimExpr] = field(default_factory=dict)
    ranges: dict[Var, Range] = field(default_factory=dict)
    expr_bounds: list[tuple[PrimExpr, int, int]] = field(default_factory=list)
    expr_modular: list[tuple[PrimExpr, int, int]] = field(default_factory=list)
    literals: list[PrimExpr] = field(default_factory=list)
    seen: set[Var] = field(default_factory=set)
    bound_memo: Memo[tuple[int, int]] = field(default_factory=dict)
    modular_memo: Memo[tuple[int, int]] = field(default_factory=dict)
    rewrite_memo: Memo[PrimExpr] = field(default_factory=dict)
    canonical_memo: Memo[Form] = field(default_factory=dict)
    simplify_memo: Memo[PrimExpr] = field(default_factory=dict)
    settled: dict[int, PrimExpr] = field(default_factory=dict)
    """Expressions to which no rewrite rule applies."""
    scopes: Memo[tuple[tuple[Any, ...], list[Any]]] = field(default_factory=dict)
    """Conditions -> the state in which an expression under them was left (``Analyzer``)."""

    def forget(self) -> None:
        """Empty the memo tables, after a fact has changed."""
        self.seen = set()
        self.bound_memo, self.modular_memo = {}, {}
        self.forget_forms()

    def forget_forms(self) -> None:
        """Empty the tables of simplified expressions; those of bounds and remainders stay."""
        self.settled, self.scopes = {}, {}
        self.rewrite_memo, self.canonical_memo, self.simplify_memo = {}, {}, {}

    def learn(self, var: Var) -> None:
        """Note that there is a new fact about ``var``."""
        if var in self.seen:
            self.forget()

    def state(self) -> tuple[Any, ...]:
        """All facts and tables, for ``restore``."""
        return tuple([getattr(self, name) for name in self.__slots__])

    def snapshot(self) -> tuple[Any, ...]:
        """The state before a scope, for ``restore``: what is learned later is not in it."""
        saved = self.state()
        for name in ("bounds", "modular", "values", "ranges"):
            setattr(self, name, dict(getattr(self, name)))
        for name in ("expr_bounds", "expr_modular", "literals"):
            setattr(self, name, list(getattr(self, name)))
        return saved

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Go back to a state: forget everything that was learned since.

        What a table of that state comes to hold may have looked at variables since.
        """
        seen = self.seen
        for name, value in zip(self.__slots__, saved, strict=True):
            setattr(self, name, value)
        self.seen |= seen
