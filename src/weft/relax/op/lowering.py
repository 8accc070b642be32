"""The rules by which LegalizeOps lowers operators to TensorIR.

A rule is ``(builder, call) -> expression``, nearly always ``builder.call_te`` of a tensor
expression. ``@operator(te=...)`` creates such a rule (``TeRule``); ``@operator(legalize=...)``
gives one that does more. A rule that returns the call itself does not lower it, for example
because no tensor expression supports its layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, Tuple, TupleGetItem, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.te.tensor import Tensor
from weft.tir.op import const as tir_const

TensorExpression = Callable[..., Tensor | Sequence[Tensor]]
"""(placeholders for the arguments, then the attributes) -> the tensors of the result."""


class Builder(Protocol):
    """The methods of the block builder that rules use."""

    def call_te(self, te_func: TensorExpression, *args: object, **kwargs: object) -> Call:
        """A call_tir of a new PrimFunc that computes a tensor expression."""

    def emit(self, expr: RelaxExpr, name_hint: str = "") -> Var:
        """Bind an expression to a new variable."""

    def emit_te(self, func: TensorExpression, *args: object, **kwargs: object) -> Var:
        """``emit`` of ``call_te``."""

    def match_cast(self, value: RelaxExpr, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Compare a value with struct info at run time; defines the symbols of the struct info."""


Rule = Callable[[Builder, Call], RelaxExpr]
"""(builder, call) -> the expression that computes the call; dimensions may be symbolic."""
Operand = RelaxExpr | PrimExpr


@dataclass(frozen=True)
class TeRule:
    """The rule that calls a tensor expression with the arguments, then the attributes, in order.

    An optional argument that the call lacks is None, and a tuple of tensors becomes a list. If an
    element-wise operator has two or more operands, a scalar constant among them becomes a number
    in the PrimFunc instead of a parameter. ``kernel`` is the name of the PrimFunc.
    """

    te: TensorExpression
    kernel: str
    arguments: int
    attributes: tuple[tuple[str, object], ...]
    """(name, default value) of each attribute."""
    is_elementwise: bool

    def __call__(self, bb: Builder, call: Call) -> Call:
        operands: list[Operand] = list(call.args)
        if self.is_elementwise and len(operands) > 1:
            operands = numbers_of(operands)
        arguments = [tuple_fields(bb, item) if is_tuple(item) else item for item in operands]
        absent = [None] * (self.arguments - len(operands))
        values = [plain(call.attrs.get(name, default)) for name, default in self.attributes]
        return bb.call_te(self.te, *arguments, *absent, *values, primfunc_name_hint=self.kernel)


def legalisations() -> dict[Op, Rule]:
    """Operator -> its rule, for all that have one: from a row, or registered by a user."""
    operators = [Op.get(name) for name in Op.list_op_names()]
    return {op: op.attributes["FLegalize"] for op in operators if op.has_attr("FLegalize")}


def plain(value: object) -> object:
    """An attribute as a tensor expression takes it: a list for an Array, None for void."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, str) and value == "void" else value


def scalar_or_tensor(arg: Operand) -> Operand:
    """A constant tensor without dimensions as a scalar expression; anything else as it is."""
    if isinstance(arg, Constant) and len(arg.data.shape) == 0:
        return tir_const(arg.data.numpy().item(), str(arg.struct_info.dtype))
    return arg


def numbers_of(operands: Sequence[Operand]) -> list[Operand]:
    """The operands with scalar constants as numbers; if all are, the first tensor stays one."""
    converted = [scalar_or_tensor(item) for item in operands]
    if not any(_is_tensor(item) for item in converted):
        first = next((i for i, item in enumerate(operands) if _is_tensor(item)), 0)
        converted[first] = operands[first]
    return converted


def _is_tensor(operand: Operand) -> bool:
    return isinstance(getattr(operand, "struct_info", None), TensorStructInfo)


def is_tuple(arg: object) -> TypeGuard[RelaxExpr]:
    """Whether an argument is a tuple of tensors."""
    return isinstance(getattr(arg, "struct_info", None), TupleStructInfo)


def tuple_fields(bb: Builder, arg: RelaxExpr) -> list[RelaxExpr]:
    """The tensors of a tuple argument."""
    if isinstance(arg, Tuple):
        return list(arg.fields)
    info = arg.struct_info
    count = len(info.fields) if isinstance(info, TupleStructInfo) else 0
    return [bb.emit(TupleGetItem(arg, index)) for index in range(count)]


def dims(expr: RelaxExpr) -> list[PrimExpr]:
    """The dimensions of a tensor; LegalizeOps calls rules only if they are known."""
    return list(tensor_dims(expr.struct_info) or ())
