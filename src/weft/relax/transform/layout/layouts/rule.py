"""What a rule for an operator's layout is given (Request) and returns (Answer)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.ir.expr import RelaxExpr
from weft.ir.operator_rules import OperatorRules
from weft.relax.expr import Call
from weft.relax.ir.lattice import tensor_dims
from weft.relax.transform.layout.layouts.order import AxisOrder, Order, identity


@dataclass(frozen=True)
class Request:
    """A call, the orders in which its arguments are stored, and the layouts asked for, if any."""

    call: Call
    have: Sequence[Order]
    desired: Sequence[str] | None = None

    @property
    def attrs(self) -> Any:
        """The attributes of the call."""
        return self.call.attrs

    @property
    def data(self) -> AxisOrder:
        """The order of the first argument, a tensor."""
        order = self.have[0]
        assert isinstance(order, AxisOrder)
        return order

    @property
    def unsplit(self) -> AxisOrder:
        """The order of the first argument; if that is split, the order of the program."""
        return identity(self.data.ndim) if self.data.is_blocked else self.data

    def dims(self, index: int = 0) -> Any:
        """The shape of an argument as the program sees it, None if unknown."""
        return tensor_dims(self.call.args[index].struct_info)


@dataclass(frozen=True)
class Answer:
    """The orders for the first arguments (others stay as they are) and of the result; the
    attributes and arguments that change.
    """

    inputs: Sequence[Order]
    output: Order
    attrs: Mapping[str, object] = field(default_factory=dict)
    args: Mapping[int, RelaxExpr] = field(default_factory=dict)


Rule = Callable[[Request], Answer | None]
"""A rule returns None if the call needs its arguments in the program's order."""

LAYOUTS: Final = OperatorRules[Rule]("relax.")
"""Operator -> its rule."""
