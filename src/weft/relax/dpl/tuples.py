"""Patterns of tuples and of their fields."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import RelaxExpr
from weft.relax.dpl.kinds import FAILS, HOLDS, DFPattern
from weft.relax.dpl.matcher import Alternative, Site
from weft.relax.expr import Tuple, TupleGetItem


class TuplePattern(DFPattern):
    """A tuple, field by field; ``pattern[i]`` is the pattern of its field."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        super().__init__(*fields)
        self.fields = tuple(fields)

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        """The pattern of a field; None is any field."""
        if index is not None:
            if not -len(self) <= index < len(self):
                raise IndexError(f"TuplePattern: field {index} of {len(self)} fields")
            index %= len(self)
        return TupleGetItemPattern(self, index)

    def __len__(self) -> int:
        return len(self.fields)

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, Tuple) or len(at.value.fields) != len(self.fields):
            return FAILS
        return (tuple(zip(self.fields, at.value.fields, strict=True)),)


class UnorderedTuplePattern(DFPattern):
    """A tuple whose fields match in some order."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        super().__init__(*fields)
        self.fields = tuple(fields)

    def __len__(self) -> int:
        return len(self.fields)

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, Tuple) or len(at.value.fields) != len(self.fields):
            return FAILS
        return (((_Placement(self.fields, tuple(at.value.fields)), at.expr),),)


class _Placement(DFPattern):
    """A step of the search for an unordered tuple: assigns one pattern to one of the fields."""

    __slots__ = ("exprs", "patterns")

    def __init__(self, patterns: tuple[DFPattern, ...], exprs: tuple[RelaxExpr, ...]) -> None:
        super().__init__()
        self.patterns, self.exprs = patterns, exprs

    def subject(self, at: Site) -> RelaxExpr | None:  # noqa: ARG002 - the protocol's
        """None: this is a step of the search, no pattern of the user's."""
        return None

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not self.patterns:
            return HOLDS
        ways = []
        for index, expr in enumerate(self.exprs):
            others = self.exprs[:index] + self.exprs[index + 1 :]
            rest = _Placement(self.patterns[1:], others)
            ways.append(((self.patterns[0], expr), (rest, at.expr)))
        return tuple(ways)


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; index None (or -1) is any."""

    __slots__ = ("index", "tuple")

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        super().__init__(tuple_value)
        self.tuple, self.index = tuple_value, -1 if index is None else index

    def __repr__(self) -> str:
        return f"{self.tuple!r}[{'...' if self.index == -1 else self.index}]"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, TupleGetItem) or self.index not in (-1, at.value.index):
            return FAILS
        return (((self.tuple, at.value.tuple_value),),)
