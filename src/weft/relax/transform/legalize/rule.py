"""What a lowering rule is, and the small adapters that the tables are written with.

A rule is ``(builder, call) -> expression``: nearly always ``builder.call_te`` of a topi function.
Returning the call itself leaves it as it is (a layout or an unknown shape that topi cannot take).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.ir.op import Op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Constant, Expr, Tuple, TupleGetItem
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import same_dims
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.tir.op import const as tir_const

Rule = Callable[[BlockBuilder, Call], Any]
Table = dict[Op, Rule]
Wanted = Mapping[int, list[Any]]
"""The dimensions that arguments must have, by position."""


def table(rules: Mapping[str, Rule]) -> Table:
    """Rules keyed by operator, from names without ``relax.``."""
    return {Op.get(f"relax.{name}"): rule for name, rule in rules.items()}


def unary(te_func: Callable[..., Any], hint: str | None = None) -> Rule:
    """One tensor in, one out; the attributes do not matter."""

    def rule(bb: BlockBuilder, call: Call) -> Any:
        return bb.call_te(te_func, call.args[0], primfunc_name_hint=hint)

    return rule


def with_attrs(te_func: Callable[..., Any], *names: str, hint: str | None = None) -> Rule:
    """All arguments, then the named attributes in order."""

    def rule(bb: BlockBuilder, call: Call) -> Any:
        values = [plain(call.attrs[name]) for name in names]
        return bb.call_te(te_func, *call.args, *values, primfunc_name_hint=hint)

    return rule


def plain(value: Any) -> Any:
    """An attribute as topi takes it: a list for an Array, None for void."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return None if isinstance(value, str) and value == "void" else value


def scalar_or_tensor(arg: Any) -> Any:
    """A constant of no dimensions as a scalar expression, so that it stands in the PrimFunc."""
    if isinstance(arg, Constant) and len(arg.data.shape) == 0:
        return tir_const(arg.data.numpy().item(), str(arg.struct_info.dtype))
    return arg


def tuple_fields(bb: BlockBuilder, arg: Any) -> list[Expr]:
    """The tensors of a tuple argument."""
    if isinstance(arg, Tuple):
        return list(arg.fields)
    info = arg.struct_info
    count = len(info.fields) if isinstance(info, TupleStructInfo) else 0
    return [bb.emit(TupleGetItem(arg, index)) for index in range(count)]


def dims(expr: Any) -> list[Any]:
    """The dimensions of a tensor; LegalizeOps has seen to it that they are known."""
    return list(tensor_dims(expr.struct_info) or ())


def with_dims(bb: BlockBuilder, x: Expr, wanted: list[Any], name: str) -> Expr:
    """The tensor; where its dimensions are not proved to be these, a match_cast compares them."""
    if same_dims(dims(x), wanted):
        return x
    info = x.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    return bb.match_cast(x, TensorStructInfo(wanted, dtype), name)


def agreeing(rule: Rule, wanted: Callable[[Call], Wanted]) -> Rule:
    """The rule on arguments whose dimensions are compared where they are not proved as wanted."""

    def checked(bb: BlockBuilder, call: Call) -> Any:
        args, name = list(call.args), call.op.name.rpartition(".")[2]
        for index, shape in wanted(call).items():
            args[index] = with_dims(bb, args[index], shape, f"{name}_{index}")
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return rule(bb, call)
        made = Call(call.op, args, call.attrs, call.sinfo_args)
        made.struct_info = call.struct_info
        return rule(bb, made)

    return checked
