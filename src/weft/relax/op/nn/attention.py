"""Attention: of a batch, with a bias, and of sequences of different lengths laid end to end.

Tensors are (batch, length, heads, features). Heads of keys and values may be fewer than those of
queries: consecutive heads of queries then share one (grouped-query attention; Ainslie et al.,
2023).
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import constant_value, differ, same_dim
from weft.relax.op.definition import FUNCTIONS, operator
from weft.relax.op.infer import check_rank, common_dtype, dims_of, fail, result, tensor
from weft.relax.op.lowering import Builder, dims
from weft.relax.op.reference.nn import attention as reference
from weft.relax.op.requirements import Required, multiple
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError
from weft.topi.nn import attention as attention_te

_MASKS = (None, "TopLeft", "BottomRight")


def infer_attention(call: Call) -> TensorStructInfo:
    """(batch, queries, heads, value features)."""
    query, key, value = (check_rank(call, index, 4) for index in range(3))
    dtype = common_dtype(call, [query, key, value])
    mask, window = call.attrs["causal_mask"], call.attrs["window_size"]
    if mask not in _MASKS:
        fail(call, f"causal_mask: expected None, TopLeft or BottomRight, got {mask!r}")
    if window is not None and window < 1:
        fail(call, f"window_size: expected 1 or more, got {window}")
    q, k, v = dims_of(query), dims_of(key), dims_of(value)
    if q is None or k is None or v is None:
        return result(None, dtype, 4, query.vdevice)
    for what, mine, its in (
        ("batch of query and key", q[0], k[0]),
        ("batch of query and value", q[0], v[0]),
        ("heads of key and value", k[2], v[2]),
        ("features of query and key", q[3], k[3]),
        ("lengths of key and value", k[1], v[1]),
    ):
        if differ(mine, its):
            fail(call, f"the {what} must be equal, got {mine} and {its}")
    heads, owners = constant_value(q[2]), constant_value(k[2])
    if heads is not None and owners and heads % owners:
        fail(
            call, f"the heads of query must be a multiple of those of key, got {heads} and {owners}"
        )
    return result([q[0], q[1], q[2], v[3]], dtype, vdevice=query.vdevice)


def infer_attention_bias(call: Call) -> TensorStructInfo:
    """As attention; the bias is (batch or 1, heads or 1, queries or 1, keys)."""
    info = infer_attention(call)
    bias = dims_of(check_rank(call, 3, 4))
    q, k = dims_of(tensor(call, 0)), dims_of(tensor(call, 1))
    if bias is None or q is None or k is None:
        return info
    for what, mine, its, spreads in (
        ("batch", q[0], bias[0], True),
        ("heads", q[2], bias[1], True),
        ("queries", q[1], bias[2], True),
        ("keys", k[1], bias[3], False),
    ):
        if differ(mine, its) and not (spreads and constant_value(its) == 1):
            fail(call, f"bias: {what}: expected {mine}{' or 1' * spreads}, got {its}")
    return info


def infer_attention_var_len(call: Call) -> TensorStructInfo:
    """As attention with batch 1; the starts are vectors of integers, the lengths scalars."""
    info = infer_attention(call)
    for index in range(3, 7):
        part = tensor(call, index)
        name = call.op.attributes["params"][index]
        expected = 1 if index < 5 else 0
        if part.ndim not in (-1, expected) and not (index >= 5 and part.ndim == 1):
            fail(call, f"{name}: expected {expected} dimensions, got {part.ndim}")
        if part.dtype not in ("void", "int32", "int64"):
            raise IRTypeError(f"{call.op.name}: {name}: expected integers, got {part.dtype}")
    dims = dims_of(tensor(call, 0))
    if dims is not None and differ(dims[0], 1):
        fail(call, f"queries: expected a batch of 1 (sequences end to end), got {dims[0]}")
    return info


def _replace_builder(name: str, function: Callable[..., Call]) -> None:
    """Let users build an operator by a function whose parameters are not the call's arguments."""
    Op.get(name).attributes["function"] = function
    FUNCTIONS[name.removeprefix("relax.")] = function


def _heads(call: Call) -> Required:
    """Keys need the query's batch and features; values need the keys' batch, length and heads."""
    query, key, value = (dims(arg) for arg in call.args[:3])
    wanted: dict[int | tuple[int, int], list[PrimExpr]] = {
        1: [query[0], *key[1:3], query[3]],
        2: [query[0], *key[1:3], value[3]],
    }
    heads, owners = query[2], key[2]
    if not same_dim(heads, owners):  # each head of keys serves the same number of heads of queries
        wanted[0] = [*query[:2], multiple(heads, owners), query[3]]
    return wanted


@operator(
    "relax.nn.attention",
    infer_attention,
    te=attention_te.attention,
    requires=_heads,
    numpy=reference.attention,
    traits=Trait.CONTRACTION,
)
def _attention(
    query: Expr,
    key: Expr,
    value: Expr,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> None:
    """softmax(query key^T * scale) value."""


@operator(
    "relax.nn.attention_bias",
    infer_attention_bias,
    te=attention_te.attention_bias,
    requires=_heads,
    numpy=reference.attention,
    traits=Trait.CONTRACTION,
)
def attention_bias(
    query: Expr,
    key: Expr,
    value: Expr,
    bias: Expr,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> None:
    """softmax(query key^T * scale + bias) value."""


def attention(
    query: Expr,
    key: Expr,
    value: Expr,
    bias: Expr | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """softmax(query key^T * scale + bias) value; with a bias, a call of attention_bias."""
    rest = (scale, causal_mask, window_size)
    if bias is None:
        return _attention(query, key, value, *rest)
    return attention_bias(query, key, value, bias, *rest)


_replace_builder("relax.nn.attention", attention)


def _lower_var_len(bb: Builder, call: Call) -> RelaxExpr:
    """Drop the maximal lengths, which only libraries need: the kernel does not read them."""
    attrs = call.attrs
    return bb.call_te(
        attention_te.attention_var_len,
        *call.args[:5],
        attrs["scale"],
        attrs["causal_mask"],
        attrs["window_size"],
    )


@operator(
    "relax.nn.attention_var_len",
    infer_attention_var_len,
    legalize=_lower_var_len,
    numpy=reference.attention_var_len,
    traits=Trait.CONTRACTION,
)
def _attention_var_len(
    queries: Expr,
    keys: Expr,
    values: Expr,
    seqstart_q: Expr,
    seqstart_k: Expr,
    max_seqlen_q: Expr,
    max_seqlen_k: Expr,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> None:
    """Attention of each sequence within tensors that hold several, end to end."""


def attention_var_len(
    queries: Expr,
    keys: Expr,
    values: Expr,
    seqstart_q: Expr,
    max_seqlen_q: Expr,
    seqstart_k: Expr | None = None,
    max_seqlen_k: Expr | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Call:
    """Attention of each sequence within tensors that hold several, end to end.

    ``seqstart_q`` holds the start of each sequence of queries, then the end of the last one;
    ``seqstart_k`` those of keys and values (the same if None). Only libraries use the maximal
    lengths.
    """
    return _attention_var_len(
        queries,
        keys,
        values,
        seqstart_q,
        seqstart_q if seqstart_k is None else seqstart_k,
        max_seqlen_q,
        max_seqlen_q if max_seqlen_k is None else max_seqlen_k,
        scale,
        causal_mask,
        window_size,
    )


_replace_builder("relax.nn.attention_var_len", attention_var_len)
