"""Struct-info rules of neural networks: what is known of results, symbolic results, errors."""

import re

import pytest

from tests.lib.rule_cases import check_rule
from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRIndexError, IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


X = tensor(2, 3, 4)
VECTOR = tensor(3)
IMAGE = tensor(2, 3, 6, 5)
QUERY = tensor(2, 3, 4, 5)

RULES = {
    "attention_bias": (op.nn.attention_bias,
                       [tensor(2, 3, 4, 5), tensor(2, 7, 2, 5), tensor(2, 7, 2, 6),
                        tensor(2, 1, 3, 7)], tensor(2, 3, 4, 6)),
    "attention_var_len": (op.nn.attention_var_len,
                          [tensor(1, 8, 4, 5), tensor(1, 8, 4, 5), tensor(1, 8, 4, 6),
                           tensor(3, dtype="int32"), tensor(dtype="int32")], tensor(1, 8, 4, 6)),
    "elu": (op.nn.elu, [X], X),
    "celu": (op.nn.celu, [X], X),
    "hardtanh": (op.nn.hardtanh, [X], X),
    "instance_norm": (lambda *a: op.nn.instance_norm(*a, 1, [2, 3]), [IMAGE, VECTOR, VECTOR],
                      IMAGE),
    "pixel_shuffle": (lambda x: op.nn.pixel_shuffle(x, 2), [tensor(2, 8, 3, 4)],
                      tensor(2, 2, 6, 8)),
    "conv3d_transpose": (lambda x, w: op.nn.conv3d_transpose(x, w, 2, 1, 1),
                         [tensor(2, 3, 4, 5, 6), tensor(3, 4, 3, 3, 3)], tensor(2, 4, 8, 10, 12)),
    "adaptive_max_pool3d": (lambda x: op.nn.adaptive_max_pool3d(x, (1, 2, 3)),
                            [tensor(2, 3, 4, 5, 6)], tensor(2, 3, 1, 2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(RULES))
def test_rule(name, infer):
    make, infos, expected = RULES[name]
    check_rule(infer, make, infos, expected)


SYMBOLIC = [
    (lambda x, w: op.nn.conv3d_transpose(x, w, 2), [tensor(N, 3, M, 5, 6), tensor(3, 4, 3, 3, 3)],
     tensor(N, 4, (M - 1) * 2 + 3, 11, 13)),
    (lambda x: op.nn.pixel_shuffle(x, 2), [tensor(N, 8, M, 4)], tensor(N, 2, M * 2, 8)),
    (lambda x: op.nn.adaptive_max_pool1d(x, 3), [tensor(N, 2, M)], tensor(N, 2, 3)),
    (op.nn.attention, [tensor(N, M, 4, 5), tensor(N, 7, 2, 5), tensor(N, 7, 2, 6)],
     tensor(N, M, 4, 6)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "infos", "expected"), SYMBOLIC)
def test_symbolic_results(make, infos, expected, infer):
    assert infer(make, *infos) == expected


ERRORS = [
    (lambda x: op.nn.hardtanh(x, 2.0, 1.0), X, IRValueError,
     "relax.nn.hardtanh: expected min_val <= max_val, got 2.0 and 1.0"),
    (lambda x: op.nn.celu(x, 0.0), X, IRValueError, "alpha: expected a number other than 0"),
    (op.nn.elu, tensor(3, dtype="int32"), IRTypeError,
     "relax.nn.elu: expected a floating-point type, got int32"),
    (lambda x: op.nn.pixel_shuffle(x, 2), X, IRValueError,
     "relax.nn.pixel_shuffle: 2 channels are not a multiple of upscale_factor ** 2 = 4"),
    (lambda x: op.nn.pixel_shuffle(x, 2), tensor(4, 3), IRValueError,
     "expected at least 3 dimensions, got 2"),
    (lambda x: op.nn.pixel_shuffle(x, 0), X, IRValueError, "expected 1 or more, got 0"),
    (lambda x: op.nn.instance_norm(x, op.zeros((3,), "float32"), op.zeros((4,), "float32"), 1, 2),
     IMAGE, IRValueError, "relax.nn.instance_norm: beta: expected 3 elements, got 4"),
    (lambda x: op.nn.instance_norm(x, op.zeros((3,), "float32"), op.zeros((3,), "float32"), 1, 1),
     IMAGE, IRValueError, "axes [1] hold the channel axis 1"),
    (lambda x: op.nn.instance_norm(x, op.zeros((3,), "float32"), op.zeros((3,), "float32"), 7, 1),
     IMAGE, IRIndexError, "channel_axis 7 is out of range"),
    (lambda x: op.nn.attention(x, x, op.zeros((2, 4, 4, 5), "float32")), QUERY, IRValueError,
     "relax.nn.attention: the lengths of key and value must be equal, got 3 and 4"),
    (lambda x: op.nn.attention(x, *[op.zeros((2, 3, 3, 5), "float32")] * 2), QUERY, IRValueError,
     "the heads of query must be a multiple of those of key, got 4 and 3"),
    (lambda x: op.nn.attention(x, x, x, causal_mask="Left"), QUERY, IRValueError,
     "causal_mask: expected None, TopLeft or BottomRight, got 'Left'"),
    (lambda x: op.nn.attention(x, x, x, window_size=0), QUERY, IRValueError,
     "window_size: expected 1 or more, got 0"),
    (lambda x: op.nn.attention(x, x, x, op.zeros((2, 3, 3, 3), "float32")), QUERY, IRValueError,
     "relax.nn.attention_bias: bias: heads: expected 4 or 1, got 3"),
    (lambda x: op.nn.attention(x, x, x, op.zeros((2, 1, 1, 1), "float32")), QUERY, IRValueError,
     "bias: keys: expected 3, got 1"),
    (lambda x: op.nn.attention_var_len(x, x, x, op.zeros((3,), "int32"), op.zeros((), "int32")),
     QUERY, IRValueError, "queries: expected a batch of 1 (sequences end to end), got 2"),
    (lambda x: op.nn.attention_var_len(x, x, x, op.zeros((3,), "float32"), op.zeros((), "int32")),
     QUERY, IRTypeError, "seqstart_q: expected integers, got float32"),
    (lambda x: op.nn.conv3d_transpose(x, op.zeros((3, 4, 3, 3, 3), "float32"), output_padding=1),
     tensor(2, 3, 4, 5, 6), IRValueError, "output_padding 1 must be below the stride 1"),
    (lambda x: op.nn.adaptive_max_pool2d(x, (1, 2, 3)), IMAGE, IRValueError,
     "output_size: expected 1 or 2 values, got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "info", "error", "message"), ERRORS)
def test_errors_name_the_operator_and_the_numbers(make, info, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(make, info)


def test_the_edge_is_replicated(build):
    """Numpy's name of the mode."""
    mod = build(lambda x: op.nn.pad(x, [0, 0, 1, 1, 0, 0], "edge"), X)
    assert mod["main"].body.blocks[0].bindings[0].value.attrs["pad_mode"] == "replicate"


def test_attention_with_a_bias_is_an_operator_of_its_own(build):
    mod = build(op.nn.attention, *[QUERY] * 3, tensor(1, 1, 3, 3))
    (binding,) = mod["main"].body.blocks[0].bindings
    assert binding.value.op.name == "relax.nn.attention_bias"
