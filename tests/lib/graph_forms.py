"""What random graphs have besides operators: calls of private functions, ``If``, match_cast.

A step's text calls these by name, with values of the graph: ``call('chain', x0)`` calls a private
function of the module, whose body is a row of ``BODIES``; ``recast(x0)`` gives every extent a new
symbol, ``forget(x0)`` leaves the number of dimensions only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tests.lib.graph_pool import Pool, Recipe, Value
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, Function, If, SeqExpr, ShapeExpr, Tuple, Var
from weft.relax.ir.lattice import symbolic_vars, tensor_dims
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as SizeVar
from weft.tir.stmt_functor import substitute


def dims(x: Var) -> list[Any]:
    """The dimensions of a variable as the graph knows them; raises IRValueError if it does not."""
    known = tensor_dims(x.struct_info)
    if known is None:
        raise IRValueError(f"the dimensions of {x.name_hint} are not known")
    return list(known)


def recast_info(x: Var, prefix: str) -> TensorStructInfo:
    """The struct info of ``x`` with a new symbol for each dimension."""
    info = _tensor(x)
    symbols = [SizeVar(f"{prefix}_{axis}", "int64") for axis in range(info.ndim)]
    return TensorStructInfo(symbols, info.dtype)


def forget_info(x: Var) -> TensorStructInfo:
    """The struct info of ``x`` without its shape."""
    info = _tensor(x)
    return TensorStructInfo(None, info.dtype, None, info.ndim)


def _tensor(x: Var) -> Any:
    info = x.struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim < 0:
        raise IRTypeError(f"{x.name_hint} is not a tensor of known rank")
    return info


# Private functions


def _chain(builder: BlockBuilder, x: Var) -> Expr:
    result: Expr = op.add(builder.emit(op.tanh(x)), x)
    return result


def _both(_: BlockBuilder, x: Var) -> Expr:
    return Tuple([op.sigmoid(x), x])


def _cast_inside(builder: BlockBuilder, x: Var) -> Expr:
    result: Expr = op.multiply(builder.match_cast(x, recast_info(x, "inner")), x)
    return result


def _branch(_: BlockBuilder, condition: Var, x: Var) -> Expr:
    return If(condition, op.add(op.tanh(x), x), op.maximum(op.sigmoid(x), x))


def _either(_: BlockBuilder, condition: Var, x: Var, y: Var) -> Expr:
    return If(condition, x, y)


BODIES: Final[dict[str, tuple[bool, Callable[..., Expr]]]] = {
    "chain": (True, _chain),
    "both": (True, _both),
    "cast inside": (True, _cast_inside),
    "branch": (False, _branch),
    "either": (False, _either),
}
"""Whether a dataflow block holds it, and the body of a private function of some parameters."""


def private_call(kind: str, arguments: Sequence[Var], is_known: bool) -> tuple[Function, list[Any]]:
    """A private function for arguments like these, and the arguments of the call.

    Where shapes are known, the parameters have the same ones in symbols of their own, which a
    parameter ``sizes`` defines; else they have the number of dimensions only.
    """
    infos = [_tensor(x) if is_known else forget_info(x) for x in arguments]
    symbols = list(dict.fromkeys([s for info in infos for s in symbolic_vars(info)]))
    own = {symbol: SizeVar(f"{symbol.name}_own", "int64") for symbol in symbols}
    params = [Var("sizes", ShapeStructInfo(list(own.values())))]
    for index, info in enumerate(infos):
        known = tensor_dims(info)
        shape = None if known is None else [substitute(extent, own) for extent in known]
        params.append(Var(f"a{index}", TensorStructInfo(shape, info.dtype, None, info.ndim)))
    builder = BlockBuilder()
    builder.begin_scope(params)
    in_dataflow, body = BODIES[kind]
    if in_dataflow:
        builder.begin_dataflow_block()
    else:
        builder.begin_binding_block()
    made = body(builder, *params[1:])
    result = builder.emit_output(made) if in_dataflow else builder.emit(made)
    whole = SeqExpr([builder.end_block()], result)
    builder.end_scope()
    func: Function = BlockBuilder().normalize(Function(params, whole))
    return func, [ShapeExpr(symbols), *arguments]


# Recipes


def _one(text: str, accept: Callable[[Value], bool] = lambda v: True) -> Recipe:
    def make(p: Pool) -> str | None:
        x = p.pick(accept)
        return None if x is None else text.format(x=x.name, f=p.r.randint(0, 1), k=_known(p))

    return make


def _known(p: Pool) -> bool:
    return p.r.random() < 0.6


def _condition(p: Pool) -> str:
    found = p.pick(lambda v: v.is_bool and v.ndim == 0)
    known = p.constant(np.array(p.r.random() < 0.5))
    return known if found is None or p.r.random() < 0.3 else found.name


def _branch_recipe(p: Pool) -> str | None:
    x = p.float()
    return None if x is None else f"call('branch', {_condition(p)}, {x.name}, known={_known(p)})"


def _either_recipe(p: Pool) -> str | None:
    x = p.any()
    y = x and p.pick(lambda v: v.dtype == x.dtype and v.ndim == x.ndim)
    if not x or not y:
        return None
    return f"call('either', {_condition(p)}, {x.name}, {y.name}, known={_known(p)})"


FORMS: Final[dict[str, Recipe]] = {
    "call": _one("call('chain', {x}, known={k})", lambda v: v.is_float),
    "call of a tuple": _one("call('both', {x}, known={k})[{f}]", lambda v: v.is_float),
    "call that casts": _one("call('cast inside', {x}, known={k})", lambda v: not v.is_bool),
    "branch": _branch_recipe,
    "either": _either_recipe,
    "recast": _one("recast({x})"),
    "forget": _one("forget({x})"),
}
"""What is not an operator, by a name for it."""
