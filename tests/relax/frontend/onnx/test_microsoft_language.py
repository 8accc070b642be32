"""What exporters and optimisers of language models write of com.microsoft, beside ONNX Runtime.

Keys in buffers, sequences of other lengths, masks of any batch, weights of few bits, experts.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import check_microsoft, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]

RNG = np.random.default_rng(3)
TABLES = {"cos": np.cos(uniform(32, 8)), "sin": np.sin(uniform(32, 8))}
GROUPED = {"num_heads": 4, "kv_num_heads": 2}
IMPORTS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


def grouped(tokens, past, total, lengths, *more, places=None, **attributes):
    """A call of GroupQueryAttention whose batch, tokens and past are symbols.

    ``places`` are those of the buffers that are said to hold keys, by default all.
    """
    batch = len(lengths)
    values = {"q": uniform(batch, tokens, 64), "k": uniform(batch, tokens, 32, seed=1),
              "v": uniform(batch, tokens, 32, seed=2)}  # fmt: skip
    if past is not None:
        values |= {"pk": uniform(batch, 2, past, 16, seed=3), "pv": uniform(batch, 2, past, 16)}
    values |= {"l": np.array(lengths, "int32"), "t": np.array(total, "int32")}
    values |= dict(more)
    names = ["q", "k", "v", "pk", "pv", "l", "t", "cos", "sin", "pos", "bias", "sink"]
    rotates = attributes.get("do_rotary")
    inputs = [name if name in values or (rotates and name in TABLES) else "-" for name in names]
    while inputs[-1] == "-":
        inputs.pop()
    symbols = {name: ["b", "s", values[name].shape[2]] for name in "qkv"}
    symbols |= {name: ["b", 2, "p", 16] for name in ("pk", "pv")} | {"l": ["b"]}
    check_microsoft("GroupQueryAttention", " ".join(inputs), "y pk2 pv2", values, TABLES,
                    {**GROUPED, **attributes}, symbols,
                    [..., *[np.s_[:, :, :places]] * 2])  # fmt: skip


@pytest.mark.parametrize("lengths", [(4, 4), (4, 2)])
@pytest.mark.parametrize(
    ("tokens", "past", "total"), [(5, 0, 5), (1, 4, 5), (1, 12, 5), (5, 12, 5)],
    ids=["prompt", "step", "step in a buffer", "prompt in a buffer"],
)  # fmt: skip
def test_keys_lie_where_the_lengths_say(tokens, past, total, lengths):
    """The past may be a buffer of more places, and sequences may differ in length."""
    grouped(tokens, past, total, lengths, do_rotary=1)


def test_several_tokens_follow_a_past():
    grouped(3, 4, 7, (6,), do_rotary=1, local_window_size=4)
    grouped(3, 12, 7, (6,), do_rotary=1, rotary_interleaved=1)
    grouped(3, 4, 7, (6,), ("sink", uniform(4)), local_window_size=2)


@pytest.mark.parametrize(
    ("tokens", "total", "kept"),
    [(1, 5, 5), (1, 8, 8), (1, 9, 5), (1, 14, 6), (3, 7, 7), (6, 17, 5), (5, 5, 5)],
)
def test_a_buffer_keeps_the_last_keys(tokens, total, kept):
    """It has eight places for a window of five: a full one loses four at once."""
    grouped(tokens, 8, total, (total - 1,), places=kept, do_rotary=1, local_window_size=5,
            sliding_window_cache=1)  # fmt: skip


def test_a_buffer_of_the_last_keys_takes_no_bias():
    with pytest.raises(OnnxNodeError, match="attention_bias is not supported with sliding"):
        grouped(1, 8, 5, (4,), ("bias", uniform(1, 1, 1, 5)), local_window_size=5,
                sliding_window_cache=1)  # fmt: skip


@pytest.mark.parametrize("past", [None, 0])
@pytest.mark.parametrize(
    ("name", "more", "attributes"),
    [
        ("soft cap", {}, {"softcap": 5.0}),
        ("smooth", {}, {"smooth_softmax": 1}),
        ("sink", {"sink": uniform(4)}, {}),
        ("sink and soft cap", {"sink": uniform(4)}, {"softcap": 5.0}),
        ("bias", {"bias": uniform(2, 4, 5, 5)}, {}),
        ("bias of all heads", {"bias": uniform(1, 1, 5, 5)}, {"scale": 0.3}),
        ("bias and sink", {"bias": uniform(1, 4, 5, 5), "sink": uniform(4)}, {}),
        ("any order", {}, {"causal": 0}),
        ("places", {"pos": np.arange(5)[None].repeat(2, 0)}, {"do_rotary": 1}),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_what_grouped_attention_is_asked_for(name, more, attributes, past):
    grouped(5, past, 5, (4, 3), *more.items(), **attributes)


def test_grouped_attention_names_inputs_that_it_does_not_take():
    made = node("GroupQueryAttention", "q k v - - l t - - - - - s", "y - -",
                domain="com.microsoft", **GROUPED)  # fmt: skip
    infos = [info("q", shape=[1, 2, 32]), info("k", shape=[1, 2, 16]), info("v", shape=[1, 2, 16]),
             info("l", "int32", [1]), info("t", "int32", []), info("s", shape=[1])]  # fmt: skip
    with pytest.raises(OnnxNodeError, match="inputs after head_sink"):
        from_onnx(model([made], infos, ["y"], imports=IMPORTS))


ENDS = np.array([3, 5], "int32")
SPANS = np.array([5, 4, 0, 1], "int32")


@pytest.mark.parametrize(
    ("mask", "dims"), [(ENDS, "b"), (ENDS, "m"), (SPANS, "m"), (SPANS, 4)], ids=str
)
def test_where_keys_end_and_begin_in_a_batch_of_any_size(mask, dims):
    """Whether a mask holds beginnings too may be known at the call only."""
    values = {"x": uniform(2, 5, 16), "m": mask}
    weights = {"w": uniform(16, 48), "c": uniform(48, seed=1)}
    symbols = {"x": ["b", "s", 16], "m": [dims]}
    check_microsoft("Attention", "x w c m", "y", values, weights, {"num_heads": 2}, symbols)


BUFFER = {"q": uniform(2, 1, 16), "k": uniform(2, 1, 16, seed=1), "v": uniform(2, 1, 16, seed=2),
          "pk": uniform(2, 2, 8, 8, seed=3), "pv": uniform(2, 2, 8, 8, seed=4),
          "n": np.array([4], "int32")}  # fmt: skip
SEEN = np.array([[0, 1, 1, 1, 1], [1, 1, 1, 1, 1]], "int32")


def test_one_token_meets_a_buffer():
    check_microsoft("MultiHeadAttention", "q k v - - - pk pv n", "y k2 v2", BUFFER, {},
                    {"num_heads": 2})  # fmt: skip
    check_microsoft(
        "DecoderMaskedMultiHeadAttention", "q k v m - pk pv n - - c", "y k2 v2",
        {**BUFFER, "m": SEEN}, {"c": uniform(48)}, {"num_heads": 2, "past_present_share_buffer": 1},
    )  # fmt: skip


def test_keys_of_an_encoder_have_their_bias():
    """Those of four dimensions come from a cache: only queries get theirs."""
    values = {
        "q": uniform(2, 3, 16),
        "k": uniform(2, 2, 5, 8, seed=1),
        "v": uniform(2, 2, 5, 8, seed=2),
    }
    check_microsoft("MultiHeadAttention", "q k v c", "y", values, {"c": uniform(48)},
                    {"num_heads": 2})  # fmt: skip


def packed(*shape):
    return RNG.integers(0, 256, shape, "uint8")


@pytest.mark.parametrize("type_", [0, 1])
@pytest.mark.parametrize(("depth", "columns", "size"), [(64, 8, 64), (40, 7, 32)])
def test_weights_that_are_places_in_a_table(type_, depth, columns, size):
    count = -(-depth * columns // size)
    check_microsoft(
        "MatMulBnb4", "a b s", "y", {"a": uniform(3, depth)},
        {"b": packed(depth * columns // 2), "s": uniform(count, low=0.1)},
        {"K": depth, "N": columns, "block_size": size, "quant_type": type_},
    )  # fmt: skip


def test_rows_of_a_packed_matrix_name_their_groups():
    """Beside numpy: with zero points, ONNX Runtime is far from this definition."""
    groups, points = RNG.integers(0, 2, 64).astype("int32"), packed(8, 1)
    weight, scales = packed(8, 2, 16), uniform(8, 2, low=0.1)
    how = {"K": 64, "N": 8, "bits": 4, "block_size": 32}
    constants = {"b": weight, "s": scales, "z": points, "g": groups}
    a = uniform(3, 64)
    check_microsoft("MatMulNBits", "a b s - g", "y", {"a": a}, constants, how)
    made = node("MatMulNBits", "a b s z g", "y", domain="com.microsoft", **how)
    proto = model([made], [info("a", shape=a.shape)], ["y"], constants=constants, imports=IMPORTS)
    numbers, zeros = (
        np.stack([item & 15, item >> 4], -1).reshape(8, -1).astype("float64")
        for item in (weight, points)
    )
    matrix = (numbers - zeros[:, groups]) * scales[:, groups]
    np.testing.assert_allclose(run(from_onnx(proto), a), a @ matrix.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("blocks", [4, 3])
def test_rows_of_a_table_of_few_bits(bits, has_zeros, blocks):
    """The last of three blocks is short."""
    width = 64 if blocks == 4 else 40
    check_microsoft(
        "GatherBlockQuantized", "d i s z" if has_zeros else "d i s", "y",
        {"i": np.array([[1, 0, 5], [2, -1, 3]])},
        {"d": packed(6, width * bits // 8), "s": uniform(6, blocks, low=0.1),
         "z": packed(6, -(-blocks * bits // 8))},
        {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}, {"i": ["n", "m"]},
    )  # fmt: skip


def test_a_table_may_be_the_weight_of_the_last_product():
    """Exporters write it once, and reshape it for the table."""
    weight, scales = packed(96, 2, 16), uniform(96, 2, low=0.1)
    nodes = [
        node("Reshape", "b s", "d"),
        node("GatherBlockQuantized", "d i f", "x", domain="com.microsoft", bits=4, block_size=32,
             gather_axis=0, quantize_axis=1),
        node("MatMulNBits", "x b f", "y", domain="com.microsoft", K=64, N=96, bits=4,
             block_size=32),
    ]  # fmt: skip
    constants = {"b": weight, "f": scales, "s": np.array([96, 32])}
    proto = model(nodes, [info("i", "int64", ["n"])], ["y"], constants=constants, imports=IMPORTS)
    numbers = np.stack([weight & 15, weight >> 4], -1).reshape(96, 2, 32).astype("float64") - 8
    table = (numbers * scales[..., None]).reshape(96, 64)
    found = run(from_onnx(proto), np.array([5, 0, 95]))
    np.testing.assert_allclose(found, table[[5, 0, 95]] @ table.T, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity", "swiglu"])
@pytest.mark.parametrize("count", [1, 2])
def test_tokens_choose_experts(kind, count):
    is_double = kind == "swiglu"
    columns = 24 if is_double else 12
    weights = {"f": uniform(4, columns, 8), "c": uniform(4, columns), "g": uniform(4, 8, 12),
               "d": uniform(4, 8, seed=2)}  # fmt: skip
    how = {"k": count, "activation_type": kind, "normalize_routing_weights": count - 1}
    if is_double:
        how |= {"swiglu_fusion": 1, "activation_alpha": 1.7, "activation_beta": 1.0,
                "swiglu_limit": 0.9}  # fmt: skip
    check_microsoft("MoE", "x r f c g d", "y", {"x": uniform(5, 8), "r": uniform(5, 4, seed=1)},
                    weights, how, {"x": ["t", 8], "r": ["t", 4]})  # fmt: skip


@pytest.mark.parametrize(("bits", "size"), [(4, 0), (8, 0), (4, 16)])
def test_experts_of_few_bits(bits, size):
    """Of blocks of bytes ONNX Runtime rounds the tokens, too."""
    share, blocks = bits / 8, (2,) if size else ()
    weights = {
        "f": packed(4, 64, int(32 * share)), "s": uniform(4, 64, *blocks, low=0.005, high=0.01),
        "g": packed(4, 32, int(32 * share)), "u": uniform(4, 32, *blocks, low=0.005, high=0.01),
        "c": uniform(4, 64), "d": uniform(4, 32),
    }  # fmt: skip
    how = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.7,
           "activation_beta": 1.0, "normalize_routing_weights": 1, "expert_weight_bits": bits,
           **({"block_size": size} if size else {})}  # fmt: skip
    values = {"x": uniform(5, 32), "r": uniform(5, 4, seed=1)}
    check_microsoft("QMoE", "x r f s c g u d", "y", values, weights, how)


def test_an_activation_of_experts_is_named():
    made = node("MoE", "x r f - g", "y", domain="com.microsoft", activation_type="relu2")
    infos = [info("x", shape=[5, 8]), info("r", shape=[5, 4])]
    constants = {"f": uniform(4, 12, 8), "g": uniform(4, 8, 12)}
    with pytest.raises(OnnxNodeError, match="activation_type: expected relu, gelu, silu, ident"):
        from_onnx(model([made], infos, ["y"], constants=constants, imports=IMPORTS))


X = uniform(2, 3, 8)
OTHERS = {
    "FusedMatMul with batches behind rows": (
        "x m", "y", {"x": uniform(3, 2, 8), "m": uniform(2, 8, 4)}, {}, {"transBatchA": 1},
    ),
    "FusedMatMul of both": (
        "x m", "y", {"x": uniform(8, 2, 3), "m": uniform(8, 2, 4)}, {},
        {"transBatchA": 1, "transA": 1, "transBatchB": 1, "alpha": 0.5},
    ),
    "FusedGemm to Softplus": ("x m", "y", {"x": X[0], "m": uniform(8, 4)}, {},
                              {"activation": "Softplus"}),
    "ScaledSiLU": ("x", "y", {"x": X}, {}, {"alpha": 1.5}),
    "GatedAdd": ("x y g", "z", {"x": X, "y": X[::-1].copy(), "g": uniform(2, 3, 1)}, {}),
    "GatedRMSNorm": ("x s g", "y", {"x": X, "g": X[::-1].copy()}, {"s": uniform(4)},
                     {"activation": "sigmoid"}),
    "BranchwiseRMSNorm": ("x s", "y", {"x": X}, {"s": uniform(8)}, {"num_branches": 2}),
    "CausalConvWithState": (
        "x w b p", "y s", {"x": uniform(2, 4, 5), "p": uniform(2, 4, 4)},
        {"w": uniform(4, 1, 3), "b": uniform(4)}, {"activation": "silu", "dilation": 2},
        {"x": ["b", 4, "t"], "p": ["b", 4, 4]},
    ),
    "Inverse": ("x", "y", {"x": uniform(2, 3, 3)}, {}),
    "UnfoldTensor": ("x", "y", {"x": uniform(2, 7)}, {}, {"dim": -1, "size": 3, "step": 2},
                     {"x": [2, "n"]}),
    "MatMulInteger16": (
        "x m", "y", {"x": RNG.integers(-99, 99, (2, 3), "int16"),
                     "m": RNG.integers(-99, 99, (3, 4), "int16")}, {},
    ),
}  # fmt: skip
"""Operator -> its inputs and outputs, values of inputs, constants, attributes, declared shapes."""


@pytest.mark.parametrize("name", OTHERS)
def test_parts_of_networks(name):
    check_microsoft(name.split()[0], *OTHERS[name])
