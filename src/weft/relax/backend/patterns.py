"""Patterns that several backends share, each with its annotations: names of its parts."""

from __future__ import annotations

from weft.relax.dpl.kinds import DFPattern
from weft.relax.dpl.leaves import GlobalVarPattern
from weft.relax.dpl.pattern import is_const, is_op, wildcard
from weft.relax.dpl.tuples import TuplePattern
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION

Annotated = tuple[DFPattern, dict[str, DFPattern]]
"""A pattern and its parts by name."""


def _with_bias_and_activation(
    annotated: Annotated, with_bias: bool, activation: str | None
) -> Annotated:
    out, parts = annotated
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.add")(out, parts["bias"])
    return (is_op(activation)(out) if activation else out), parts


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> Annotated:
    """An operator of two arguments; parts ``lhs``, ``rhs``, ``root``, ``bias``."""
    lhs, rhs = wildcard(), wildcard()
    root = is_op(op_name)(lhs, rhs)
    annotated: Annotated = root, {"lhs": lhs, "rhs": rhs, "root": root}
    return _with_bias_and_activation(annotated, with_bias, activation)


def make_conv2d_pattern(with_bias: bool = False, activation: str | None = None) -> Annotated:
    """A convolution of images; parts ``input``, ``weight``, ``root``, ``bias``."""
    data, weight = wildcard(), wildcard()
    root = is_op(IMAGE_CONVOLUTION.name)(data, weight)
    annotated: Annotated = root, {"input": data, "weight": weight, "root": root}
    return _with_bias_and_activation(annotated, with_bias, activation)


def make_matmul_pattern(
    with_bias: bool = False, activation: str | None = None, transposed_rhs: bool = False
) -> Annotated:
    """A matmul, perhaps of a transposed right side; parts ``lhs``, ``rhs``, ``root``, ``bias``."""
    annotated = _matmul(transposed_rhs)
    return _with_bias_and_activation(annotated, with_bias, activation)


def _matmul(transposed_rhs: bool) -> Annotated:
    lhs, rhs = wildcard(), wildcard()
    right: DFPattern = is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs
    root = is_op("relax.matmul")(lhs, right)
    return root, {"lhs": lhs, "rhs": rhs, "root": root}


def make_residual_block_pattern(
    node_output: DFPattern | Annotated, binary_op: str = "relax.add", activation: str | None = None
) -> Annotated:
    """A pattern (perhaps with parts) combined with a residual input; adds the part ``residual``."""
    inner, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual = wildcard()
    combine = is_op(binary_op)
    out: DFPattern = combine(inner, residual) | combine(residual, inner)
    return (is_op(activation)(out) if activation else out), {**parts, "residual": residual}


def make_attention_pattern(with_bias: bool = False, var_len: bool = False) -> Annotated:
    """An attention operator; parts ``query``, ``key``, ``value``, ``bias``, sequence starts."""
    names = ["query", "key", "value"]
    operator = "relax.nn.attention"
    if with_bias:
        names, operator = [*names, "bias"], "relax.nn.attention_bias"
    elif var_len:
        names += ["seqstart_q", "seqstart_k", "max_seqlen_q", "max_seqlen_k"]
        operator = "relax.nn.attention_var_len"
    parts: dict[str, DFPattern] = {name: wildcard() for name in names}
    return is_op(operator)(*parts.values()), parts


def make_layer_norm_pattern() -> Annotated:
    """A layer_norm."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_rms_norm_pattern() -> Annotated:
    """A call_tir of an input and a weight; parts ``gv`` (the PrimFunc), ``inp``, ``rms_norm``."""
    callee, data, weight = GlobalVarPattern(), wildcard(), wildcard()
    out = is_op("relax.call_tir")(callee, TuplePattern([data, weight]))
    return out, {"gv": callee, "inp": data, "rms_norm": out}


def make_matmul_dequantize_pattern(transposed_rhs: bool = False) -> Annotated:
    """A matmul whose result is dequantised; parts of the matmul, ``scale`` and ``zp``."""
    root, parts = _matmul(transposed_rhs)
    parts |= {"scale": is_const(), "zp": is_const()}
    return is_op("relax.dequantize")(root, parts["scale"], parts["zp"]), parts


def make_matmul_multiply_pattern(transposed_rhs: bool = False) -> Annotated:
    """A matmul times the product of two scalars, then a cast; parts ``scaleA``, ``scaleB``."""
    root, parts = _matmul(transposed_rhs)
    parts |= {"scaleA": wildcard(), "scaleB": wildcard()}
    scale = is_op("relax.multiply")(
        parts["scaleA"].has_shape((1,)), parts["scaleB"].has_shape((1,))
    )
    return is_op("relax.astype")(is_op("relax.multiply")(root, scale)), parts
