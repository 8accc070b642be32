"""What the user of a schedule holds: names of blocks, loops and numbers in a scheduling program."""

from __future__ import annotations

from typing import TypeAlias

from weft.ir.expr import PrimExpr


class RandomVariable:
    """A name for something in the program; ``hint`` is what it was called there."""

    __slots__ = ("__weakref__", "hint")

    def __init__(self, hint: str = "_") -> None:
        self.hint = hint

    def same_as(self, other: object) -> bool:
        """Whether both are the same variable."""
        return self is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.hint})"


class BlockRV(RandomVariable):
    """Stands for a block."""

    __slots__ = ()


class LoopRV(RandomVariable):
    """Stands for a loop."""

    __slots__ = ()


ExprRV: TypeAlias = PrimExpr
"""Stands for a number: a variable that a sampling call returned, or an expression of such."""
