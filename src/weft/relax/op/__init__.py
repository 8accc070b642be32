"""Graph operators: ``relax.op.<name>``; importing the package registers all of them.

Fills the slot ``relax_operators``: what Python's operators on graph expressions, struct infos and
functions call.
"""

from __future__ import annotations

import importlib
from typing import Any

from weft.relax.expr import ShapeExpr
from weft.relax.ir import lattice
from weft.relax.op import builtin, ccl, distributed, image, memory, nn, vision, vm
from weft.relax.op.base import (
    assert_op,
    call_builtin_with_ctx,
    call_dps_packed,
    call_global,
    call_inplace_packed,
    call_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
    hint_on_device,
    invoke_closure,
    invoke_pure_closure,
    make_closure,
    null_value,
    print,  # noqa: A004 - TVM's name
    shape_of,
    shape_to_tensor,
    tensor_to_shape,
    to_vdevice,
)
from weft.relax.op.binary import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    log_add_exp,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
from weft.relax.op.create import (
    arange,
    eye,
    eye_like,
    full,
    full_like,
    hamming_window,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from weft.relax.op.definition import FUNCTIONS
from weft.relax.op.index import (
    dynamic_strided_slice,
    strided_slice,
    take,
)
from weft.relax.op.linear_algebra import (
    einsum,
    linear,
    matmul,
    outer,
)
from weft.relax.op.manipulate import (
    broadcast_to,
    collapse_sum_like,
    collapse_sum_to,
    concat,
    expand_dims,
    flatten,
    flip,
    layout_transform,
    meshgrid,
    one_hot,
    permute_dims,
    repeat,
    reshape,
    split,
    squeeze,
    stack,
    tile,
)
from weft.relax.op.nn import dense, relu
from weft.relax.op.quantization import dequantize, quantize
from weft.relax.op.sampling import multinomial_from_uniform
from weft.relax.op.scatter import (
    gather_elements,
    gather_nd,
    index_put,
    index_tensor,
    scatter_elements,
    scatter_nd,
    slice_scatter,
)
from weft.relax.op.selection import (
    argsort,
    astype,
    bucketize,
    ewise_fma,
    masked_fill,
    nonzero,
    sort,
    topk,
    unique,
    where,
    wrap_param,
)
from weft.relax.op.statistical import (
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,  # noqa: A004 - TVM's name
    mean,
    median,
    min,  # noqa: A004 - TVM's name
    prod,
    std,
    sum,  # noqa: A004 - TVM's name
    variance,
)
from weft.relax.op.unary import (
    abs,  # noqa: A004 - TVM's name
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    ceil,
    clip,
    cos,
    cosh,
    erf,
    exp,
    floor,
    isfinite,
    isinf,
    isnan,
    log,
    logical_not,
    negative,
    round,  # noqa: A004 - TVM's name
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)
from weft.support import slots

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "assert_op",
    "astype",
    "atan",
    "atanh",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast_to",
    "bucketize",
    "builtin",
    "call_builtin_with_ctx",
    "call_dps_packed",
    "call_inplace_packed",
    "call_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "ccl",
    "ceil",
    "clip",
    "collapse_sum_like",
    "collapse_sum_to",
    "concat",
    "cos",
    "cosh",
    "cumprod",
    "cumsum",
    "dense",
    "dequantize",
    "distributed",
    "divide",
    "dynamic_strided_slice",
    "einsum",
    "equal",
    "erf",
    "ewise_fma",
    "exp",
    "expand_dims",
    "eye",
    "eye_like",
    "flatten",
    "flip",
    "floor",
    "floor_divide",
    "floor_mod",
    "full",
    "full_like",
    "gather_elements",
    "gather_nd",
    "greater",
    "greater_equal",
    "hamming_window",
    "hint_on_device",
    "image",
    "index_put",
    "index_tensor",
    "invoke_closure",
    "invoke_pure_closure",
    "isfinite",
    "isinf",
    "isnan",
    "layout_transform",
    "left_shift",
    "less",
    "less_equal",
    "linear",
    "log",
    "log_add_exp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "make_closure",
    "masked_fill",
    "matmul",
    "max",
    "maximum",
    "mean",
    "median",
    "memory",
    "meshgrid",
    "min",
    "minimum",
    "mod",
    "multinomial_from_uniform",
    "multiply",
    "negative",
    "nn",
    "nonzero",
    "not_equal",
    "null_value",
    "one_hot",
    "ones",
    "ones_like",
    "outer",
    "permute_dims",
    "power",
    "print",
    "prod",
    "quantize",
    "relu",
    "repeat",
    "reshape",
    "right_shift",
    "round",
    "rsqrt",
    "scatter_elements",
    "scatter_nd",
    "shape_of",
    "shape_to_tensor",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice_scatter",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "strided_slice",
    "subtract",
    "sum",
    "take",
    "tan",
    "tanh",
    "tensor_to_shape",
    "tile",
    "to_vdevice",
    "topk",
    "tril",
    "triu",
    "trunc",
    "unique",
    "variance",
    "vision",
    "vm",
    "where",
    "wrap_param",
    "zeros",
    "zeros_like",
]

_LATE = {
    "bind_params": "weft.relax.rewrite.binding",
    "bind_symbolic_vars": "weft.relax.rewrite.binding",
    "inline_functions": "weft.relax.rewrite.binding",
}
"""Functions of this room that build on the block builder, imported at first use."""


class RelaxOperators:
    """The namespace in the slot: operators by name and the few functions that nodes call."""

    call_global = staticmethod(call_global)
    make_shape = staticmethod(ShapeExpr)
    struct_info_equal = staticmethod(lattice.struct_info_equal)
    struct_info_is_base_of = staticmethod(lattice.struct_info_is_base_of)
    result_info = staticmethod(lattice.result_info)

    def __getattr__(self, name: str) -> Any:
        """A function of _LATE, or the operator of that name."""
        if name in _LATE:
            return getattr(importlib.import_module(_LATE[name]), name)
        if name in FUNCTIONS:
            return FUNCTIONS[name]
        raise AttributeError(f"there is no graph operator {name!r}")


slots.relax_operators.fill(RelaxOperators())
