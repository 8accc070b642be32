"""How the row of an operator becomes TensorIR: the rule that LegalizeOps runs.

A rule is ``(builder, call) -> expression``: nearly always ``builder.call_te`` of a tensor
expression. ``@operator(te=...)`` makes one of the tensor expression (``TeRule``);
``@operator(legalize=...)`` gives one that does more. A rule that returns the call itself leaves it
as it is (a layout or a shape that no tensor expression takes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import StructInfo, TupleStructInfo
from weft.te.tensor import Tensor
from weft.tir.op import const as tir_const

TensorExpression = Callable[..., Tensor | Sequence[Tensor]]
"""From placeholders of the arguments, then the attributes, to the tensors of the result."""


class Builder(Protocol):
    """What a rule asks of the block builder."""

    def call_te(self, te_func: TensorExpression, *args: object, **kwargs: object) -> Call:
        """A call_tir of a new PrimFunc made from a tensor expression."""

    def emit(self, expr: RelaxExpr, name_hint: str = "") -> Var:
        """Bind an expression to a new variable."""

    def emit_te(self, func: TensorExpression, *args: object, **kwargs: object) -> Var:
        """``emit`` of ``call_te``."""

    def match_cast(self, value: RelaxExpr, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Bind a value after a comparison with struct info, whose symbols that defines."""


Rule = Callable[[Builder, Call], RelaxExpr]
"""From a call, whose shapes are known up to symbols, to what computes it."""
Operand = RelaxExpr | PrimExpr


@dataclass(frozen=True)
class TeRule:
    """The rule of a tensor expression: it gets the arguments, then the attributes, in order.

    An optional argument that the call lacks is None. A tuple of tensors is a list of them. Where
    an element-wise operator has two or more operands, a constant without dimensions is a number
    that stands in the PrimFunc. ``kernel`` names the PrimFunc; by default it is the name of ``te``.
    """

    te: TensorExpression
    kernel: str
    arguments: int
    attributes: tuple[tuple[str, object], ...]
    """Names and the values that a call without them has."""
    is_elementwise: bool

    def __call__(self, bb: Builder, call: Call) -> Call:
        operands: list[Operand] = list(call.args)
        if self.is_elementwise and len(operands) > 1:
            operands = numbers_of(operands)
        arguments = [tuple_fields(bb, item) if is_tuple(item) else item for item in operands]
        absent = [None] * (self.arguments - len(operands))
        values = [plain(call.attrs.get(name, default)) for name, default in self.attributes]
        return bb.call_te(
            self.te, *arguments, *absent, *values, primfunc_name_hint=self.kernel
        )


def legalisations() -> dict[Op, Rule]:
    """The rules of all operators that have one: those of rows, and those that users registered."""
    operators = [Op.get(name) for name in Op.list_op_names()]
    return {op: op.attributes["FLegalize"] for op in operators if op.has_attr("FLegalize")}


def plain(value: object) -> object:
    """An attribute as a tensor expression takes it: a list for an Array, None for void."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, str) and value == "void" else value


def scalar_or_tensor(arg: Operand) -> Operand:
    """A constant of no dimensions as a scalar expression, so that it stands in the PrimFunc."""
    if isinstance(arg, Constant) and len(arg.data.shape) == 0:
        return tir_const(arg.data.numpy().item(), str(arg.struct_info.dtype))
    return arg


def numbers_of(operands: Sequence[Operand]) -> list[Operand]:
    """The operands, constants without dimensions as numbers; the first one stays if all are."""
    converted = [scalar_or_tensor(item) for item in operands]
    if not any(isinstance(item, Expr) for item in converted):
        converted[0] = operands[0]
    return converted


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
    """The dimensions of a tensor; LegalizeOps has seen to it that they are known."""
    return list(tensor_dims(expr.struct_info) or ())
