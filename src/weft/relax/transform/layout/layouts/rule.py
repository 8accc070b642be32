"""What a rule of layout inference sees and says."""

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
    """A call, the orders in which its arguments are stored, and the layouts wanted for it."""

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
        """The order of the first argument, or the program's where axes are split."""
        return identity(self.data.ndim) if self.data.is_blocked else self.data

    def dims(self, index: int = 0) -> Any:
        """The shape of an argument as the program sees it, None if unknown."""
        return tensor_dims(self.call.args[index].struct_info)


@dataclass(frozen=True)
class Answer:
    """The orders for the first arguments (the others stay), of the result, and what changes."""

    inputs: Sequence[Order]
    output: Order
    attrs: Mapping[str, object] = field(default_factory=dict)
    args: Mapping[int, RelaxExpr] = field(default_factory=dict)


Rule = Callable[[Request], Answer | None]
"""None: the operator needs its arguments as the program names their axes."""

LAYOUTS: Final = OperatorRules[Rule]("relax.")
"""Operators that can work on tensors stored in another order."""
