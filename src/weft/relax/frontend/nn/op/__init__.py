"""Operators on nn tensors: each emits one relax operator, or a few, and wraps the result.

The names are TVM 0.20's; what ``nn.op`` has, ``nn`` has too.
"""

from weft.relax.frontend.nn.op.call import (
    ccl_allgather,
    ccl_allreduce,
    ccl_broadcast_from_worker0,
    debug_func,
    extern,
    print_,
    tensor_expr_op,
    tensor_ir_inplace_op,
    tensor_ir_op,
)
from weft.relax.frontend.nn.op.elementwise import (
    add,
    astype,
    divide,
    equal,
    exp,
    gelu,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    sqrt,
    square,
    subtract,
    tanh,
    where,
)
from weft.relax.frontend.nn.op.manipulate import (
    argsort,
    broadcast_to,
    chunk,
    concat,
    cumsum,
    empty,
    full,
    max,  # noqa: A004 - TVM's name
    min,  # noqa: A004 - TVM's name
    ones,
    pad,
    permute,
    permute_dims,
    repeat,
    reshape,
    sort,
    split,
    squeeze,
    sum,  # noqa: A004 - TVM's name
    take,
    topk,
    triu,
    unsqueeze,
    zeros,
)
from weft.relax.frontend.nn.op.neural import (
    conv1d,
    conv1d_transpose,
    conv2d,
    conv3d,
    get_timestep_embedding,
    group_norm,
    interpolate,
    layer_norm,
    matmul,
    rms_norm,
    scaled_dot_product_attention,
)
from weft.relax.frontend.nn.op.sampling import (
    multinomial_from_uniform,
    renormalize_top_p_top_k_prob,
    sample_top_p_top_k_from_sorted_prob,
)
from weft.relax.frontend.nn.tensor import wrap_nested

__all__ = [
    "add", "argsort", "astype", "broadcast_to", "ccl_allgather", "ccl_allreduce",
    "ccl_broadcast_from_worker0", "chunk", "concat", "conv1d", "conv1d_transpose", "conv2d",
    "conv3d", "cumsum", "debug_func", "divide", "empty", "equal", "exp", "extern", "full", "gelu",
    "get_timestep_embedding", "greater", "greater_equal", "group_norm", "interpolate",
    "layer_norm", "less", "less_equal", "matmul", "max", "maximum", "min", "minimum",
    "multinomial_from_uniform", "multiply", "negative", "not_equal", "ones", "pad", "permute",
    "permute_dims", "print_", "relu", "renormalize_top_p_top_k_prob", "repeat", "reshape",
    "rms_norm", "sample_top_p_top_k_from_sorted_prob", "scaled_dot_product_attention", "sigmoid",
    "silu", "softmax", "softplus", "sort", "split", "sqrt", "square", "squeeze", "subtract", "sum",
    "take", "tanh", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op", "topk", "triu",
    "unsqueeze", "where", "wrap_nested", "zeros",
]  # fmt: skip
