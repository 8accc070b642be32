"""Tensor operator inventory: the standard operators as tensor expressions.

Each module holds one family; ``weft.topi.nn`` has those of neural networks. Importing the package
also defines arithmetic of whole tensors: ``A + B``.
"""

from typing import NoReturn

from weft.support.missing import MissingNameError
from weft.te.tensor import register_tensor_operators
from weft.topi import broadcast, image, math, nn, tag, utils, vision
from weft.topi.broadcast import (
    add,
    atan2,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    broadcast_to,
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
    trunc_divide,
)
from weft.topi.creation import (
    arange,
    elemwise_sum,
    eye,
    full,
    full_like,
    hamming_window,
    linspace,
    one_hot,
    ones,
    ones_like,
    tril,
    trilu,
    triu,
    zeros,
    zeros_like,
)
from weft.topi.einsum import einsum
from weft.topi.indexing import gather, gather_nd, index_tensor, sequence_mask, take, where
from weft.topi.layouts import layout_transform
from weft.topi.linear import matmul, tensordot
from weft.topi.math import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    cast,
    ceil,
    ceil_log2,
    clip,
    cos,
    cosh,
    erf,
    exp,
    fast_erf,
    fast_exp,
    fast_tanh,
    floor,
    identity,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    logical_not,
    negative,
    reinterpret,
    round,
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
from weft.topi.reduction import all, any, argmax, argmin, collapse_sum, max, min, prod, sum
from weft.topi.scan import cumprod, cumsum
from weft.topi.scatter import (
    index_put,
    masked_scatter,
    scatter_elements,
    scatter_nd,
    slice_scatter,
)
from weft.topi.search import searchsorted
from weft.topi.sort import argsort, sort, topk
from weft.topi.transform import (
    concatenate,
    dynamic_strided_slice,
    expand_dims,
    flatten,
    flip,
    meshgrid,
    ndarray_size,
    repeat,
    reshape,
    reverse_sequence,
    shape,
    shape_func_dynamic_strided_slice,
    split,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
)

register_tensor_operators(
    add=add, subtract=subtract, multiply=multiply, divide=divide, floor_divide=floor_divide,
    floor_mod=floor_mod, power=power, negative=negative, less=less, less_equal=less_equal,
    greater=greater, greater_equal=greater_equal, equal=equal, cast=cast,
)  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    """Raise the error for an operator that is not here: it names the nearest."""
    raise MissingNameError(f"topi has no operator {name!r}", name, _known, "topi.")


def _known() -> list[str]:
    """All names, with those of the packages below: whoever types topi.relu means topi.nn.relu."""
    below = [f"{package}.{name}" for package in ("nn", "image") for name in dir(globals()[package])]
    return [*_PUBLIC, *[name for name in below if "._" not in name]]


_PUBLIC = tuple(name for name in globals() if not name.startswith("_"))
