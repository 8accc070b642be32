"""What a torch graph holds while it is translated: the types of values, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from torch import fx

from weft.ir.expr import PrimExpr
from weft.relax.expr import Expr


@dataclass(frozen=True)
class ComplexTensor:
    """A complex tensor: its real and its imaginary parts, of one shape and type."""

    real: Expr
    imaginary: Expr


Scalar = PrimExpr | int | float
"""A number that the graph knows, or a symbolic one."""
Operand = Expr | Scalar
"""A tensor, or a number beside it; a ``PrimValue`` among the expressions is a number too."""
Value: TypeAlias = (
    Expr | ComplexTensor | PrimExpr | int | float | complex | str | fx.GraphModule
    | Sequence["Value"] | None
)  # fmt: skip
"""What a node stands for: what converters take and give, and the nested graphs of control flow."""
