"""Lowering of element-wise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import topi
from weft.ir.node import expect
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Constant, Expr, PrimValue, const
from weft.relax.transform.legalize.rule import Rule, scalar_or_tensor, table, unary
from weft.support.dtype import DataType


def binary(te_func: Callable[..., Any], hint: str | None = None) -> Rule:
    """Two operands; a scalar constant becomes a number in the PrimFunc."""

    def rule(bb: BlockBuilder, call: Call) -> Any:
        lhs, rhs = call.args[0], scalar_or_tensor(call.args[1])
        if isinstance(rhs, Expr):
            lhs = scalar_or_tensor(lhs)
        return bb.call_te(te_func, lhs, rhs, primfunc_name_hint=hint)

    return rule


def _clip(bb: BlockBuilder, call: Call) -> Any:
    low, high = [expect(bound, PrimValue).value for bound in call.args[1:]]
    return bb.call_te(topi.clip, call.args[0], low, high, primfunc_name_hint="tir_clip")


def _astype(bb: BlockBuilder, call: Call) -> Any:
    """A constant number is converted here, but for floats that no integer of the type is near."""
    source, target = call.args[0], str(call.attrs["dtype"])
    if isinstance(source, Constant) and source.data.ndim == 0:
        value, kind = source.data.numpy(), DataType(target)
        with np.errstate(all="ignore"):
            made = value.astype(kind.numpy)
        truncated = DataType(source.struct_info.dtype).is_float and kind.is_integral
        if not truncated or abs(float(made) - float(value)) < 1:
            return const(made, target)
    return bb.call_te(topi.cast, source, target)


def _where(bb: BlockBuilder, call: Call) -> Any:
    operands = [scalar_or_tensor(arg) for arg in call.args[1:]]
    if all(not isinstance(item, Expr) for item in operands):
        operands = list(call.args[1:])
    return bb.call_te(topi.where, call.args[0], *operands)


def _fma(x: Any, y: Any, z: Any) -> Any:
    return topi.add(topi.multiply(x, y), z)


UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh",
    "erf", "exp", "floor", "isfinite", "isinf", "isnan", "log", "logical_not", "negative", "round",
    "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
BINARY = (
    "add", "bitwise_and", "bitwise_or", "bitwise_xor", "divide", "equal", "floor_divide",
    "floor_mod", "greater", "greater_equal", "left_shift", "less", "less_equal", "log_add_exp",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply",
    "not_equal", "power", "right_shift", "subtract",
)  # fmt: skip

TIR_NAMES = {
    name: f"tir_{name}"
    for name in (
        "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos",
        "cosh", "exp", "floor", "log", "logical_not", "negative", "round", "rsqrt", "sigmoid",
        "sign", "sin", "sinh", "sqrt", "tan", "tanh",
    )
}  # fmt: skip
"""PrimFuncs that TVM 0.20 names ``tir_<name>``."""

TABLE = table(
    {
        **{name: unary(getattr(topi, name), TIR_NAMES.get(name)) for name in UNARY},
        **{name: binary(getattr(topi, name)) for name in BINARY},
        "clip": _clip,
        "square": unary(lambda x: topi.multiply(x, x), "tir_square"),
        "where": _where,
        "ewise_fma": lambda bb, call: bb.call_te(_fma, *call.args, primfunc_name_hint="fma"),
        "astype": _astype,
    }
)
