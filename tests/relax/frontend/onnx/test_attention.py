"""Attention of ONNX and of com.microsoft, rotations, fused norms."""

import numpy as np
import pytest
from onnx import helper

from tests.lib.onnx_models import check, info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

pytestmark = pytest.mark.onnx

IMPORTS = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]


def fused(name, inputs, outputs, infos, constants=None, **attributes):
    """The module of one node of com.microsoft."""
    made = node(name, inputs, outputs, domain="com.microsoft", **attributes)
    return from_onnx(model([made], infos, outputs.split(), constants=constants,
                           imports=IMPORTS))  # fmt: skip


def attended(q, k, v, bias=0.0, scale=None):
    """softmax(q k^T * scale + bias) v of (batch, heads, length, features)."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q @ k.swapaxes(2, 3) * scale + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def heads(x, count):
    """(batch, heads, length, features) of (batch, length, heads * features)."""
    return x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def merged(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def causal(queries, keys):
    shift = keys - queries
    return np.where(np.arange(keys) <= np.arange(queries)[:, None] + shift, 0, -np.inf)


def test_attention_of_any_length_with_shared_heads():
    nodes = [node("Attention", "q k v", "y", q_num_heads=4, kv_num_heads=2, is_causal=1)]
    infos = [info("q", shape=["b", "s", 8]), info("k", shape=["b", "t", 4]),
             info("v", shape=["b", "t", 4])]  # fmt: skip
    proto = model(nodes, infos, ["y"], opset=23)
    assert "R.nn.attention(" in from_onnx(proto).script()
    check(proto, uniform(2, 3, 8), uniform(2, 5, 4, seed=1), uniform(2, 5, 4, seed=2))


def test_masks_and_the_past():
    mask = uniform(3, 5) > 0
    mask[1] = False  # a query that sees nothing
    names = ["q", "k", "v", "m", "pk", "pv"]
    shapes = [["b", 2, "s", 4], ["b", 2, "s", 4], ["b", 2, "s", 4], ["s", "total"],
              ["b", 2, "p", 4], ["b", 2, "p", 4]]  # fmt: skip
    infos = [info(name, "bool" if name == "m" else "float32", shape)
             for name, shape in zip(names, shapes, strict=True)]  # fmt: skip
    proto = model([node("Attention", " ".join(names), "y k2 v2", is_causal=1)], infos,
                  ["y", "k2", "v2"], opset=23)  # fmt: skip
    q, k, v = (uniform(1, 2, 3, 4, seed=seed) for seed in range(3))
    past = [uniform(1, 2, 2, 4, seed=seed) for seed in (3, 4)]
    check(proto, q, k, v, mask, *past)


def test_what_relax_has_not_is_expanded():
    made = node("Attention", "q k v", "y k2 v2 s", softcap=2.0, qk_matmul_output_mode=3)
    infos = [info(name, shape=[1, 2, 3, 4]) for name in "qkv"]
    proto = model([made], infos, ["y", "s"], opset=23)
    check(proto, *[uniform(1, 2, 3, 4, seed=seed) for seed in range(3)])


@pytest.mark.parametrize("mask", [None, (2, 5), (2,)])
def test_microsoft_attention(mask):
    x, weights, bias = uniform(2, 5, 6), uniform(6, 12, seed=1), uniform(12, seed=2)
    infos, given, names = [info("x", shape=["b", "s", 6])], [x], "x w b"
    flags = np.ones((2, 5), bool)
    if mask is not None:
        values = np.array([5, 3], "int32")
        flags = np.arange(5) < values[:, None]
        infos.append(info("m", "int32", ["b", "s"][: len(mask)]))
        given.append(flags.astype("int32") if len(mask) == 2 else values)
        names += " m"
    mod = fused("Attention", names, "y", infos, {"w": weights, "b": bias}, num_heads=2,
                unidirectional=int(mask is None))  # fmt: skip
    q, k, v = (heads(part, 2) for part in np.split(x @ weights + bias, 3, -1))
    extra = np.where(flags, 0, -10000.0)[:, None, None] + (causal(5, 5) if mask is None else 0)
    np.testing.assert_allclose(run(mod, *given), merged(attended(q, k, v, extra)), rtol=1e-4,
                               atol=1e-5)  # fmt: skip


def test_multi_head_attention_with_a_bias_and_the_past():
    q, k, v = (uniform(2, 3, 8, seed=seed) for seed in range(3))
    bias, past = uniform(24, seed=3), [uniform(2, 2, 4, 4, seed=seed) for seed in (4, 5)]
    infos = [info(name, shape=["b", "s", 8]) for name in "qkv"]
    infos += [info(name, shape=["b", 2, "p", 4]) for name in ("pk", "pv")]
    mod = fused("MultiHeadAttention", "q k v b - - pk pv", "y yk yv", infos, {"b": bias},
                num_heads=2, scale=0.3)  # fmt: skip
    got = run(mod, q, k, v, *past)
    parts = [heads(item + piece, 2)
             for item, piece in zip((q, k, v), np.split(bias, 3), strict=True)]  # fmt: skip
    keys, values = (np.concatenate(pair, 2) for pair in zip(past, parts[1:], strict=True))
    wanted = [merged(attended(parts[0], keys, values, scale=0.3)), keys, values]
    for mine, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)


def turned(x, cos, sin, interleaved):
    """Pairs of features turned; tables are (length, pairs)."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    parts = a * cos - b * sin, a * sin + b * cos
    return np.stack(parts, -1).reshape(x.shape) if interleaved else np.concatenate(parts, -1)


@pytest.mark.slow
def test_group_query_attention_with_rotations():
    q, k, v = uniform(1, 3, 16), uniform(1, 3, 8, seed=1), uniform(1, 3, 8, seed=2)
    past = [uniform(1, 2, 2, 4, seed=seed) for seed in (3, 4)]
    angles = np.outer(np.arange(9), [1.0, 0.1]).astype("float32")
    cos, sin = np.cos(angles), np.sin(angles)
    infos = [info("q", shape=["b", "s", 16]), *[info(n, shape=["b", "s", 8]) for n in "kv"]]
    infos += [info(name, shape=["b", 2, "p", 4]) for name in ("pk", "pv")]
    infos += [info("l", "int32", ["b"]), info("t", "int32", [])]
    mod = fused("GroupQueryAttention", "q k v pk pv l t c z", "y yk yv", infos,
                {"c": cos, "z": sin}, num_heads=4, kv_num_heads=2, do_rotary=1)  # fmt: skip
    got = run(mod, q, k, v, *past, np.array([4], "int32"), np.array(5, "int32"))
    tables = cos[2:5], sin[2:5]
    queries, keys = (turned(heads(x, n), *tables, False) for x, n in ((q, 4), (k, 2)))
    keys, values = np.concatenate([past[0], keys], 2), np.concatenate([past[1], heads(v, 2)], 2)
    every = attended(queries, *[np.repeat(x, 2, 1) for x in (keys, values)], causal(3, 5))
    for mine, want in zip(got, [merged(every), keys, values], strict=True):
        np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-5)


def test_rotations_by_places():
    x, places = uniform(2, 3, 12), np.array([[0, 1, 2], [4, 5, 3]])
    angles = np.outer(np.arange(6), [1.0, 0.1]).astype("float32")
    mod = fused("RotaryEmbedding", "x p c s", "y", [info("x", shape=["b", "s", 12]),
                info("p", "int64", ["b", "s"])], {"c": np.cos(angles), "s": np.sin(angles)},
                num_heads=2, interleaved=1)  # fmt: skip
    whole = heads(x, 2)
    tables = [table[places][:, None] for table in (np.cos(angles), np.sin(angles))]
    wanted = np.concatenate([turned(whole[..., :4], *tables, True), whole[..., 4:]], -1)
    np.testing.assert_allclose(run(mod, x, places), merged(wanted), rtol=1e-5, atol=1e-6)


def normed(x, gamma, beta, epsilon=1e-12):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * (
        gamma
    ) + beta


def test_fused_norms():
    x, skip, gamma, beta, bias = (uniform(*shape, seed=seed) for seed, shape in enumerate(
        [(2, 3, 4), (2, 3, 4), (4,), (4,), (4,)]))  # fmt: skip
    nodes = [
        node("SkipLayerNormalization", "x s g b c", "y mean spread t", domain="com.microsoft"),
        node("SkipLayerNormalization", "x s g b", "y2 - - t2", domain="com.microsoft"),
        node("SkipSimplifiedLayerNormalization", "x s g", "z", domain="com.microsoft"),
    ]
    proto = model(nodes, [info("x", shape=["n", "m", 4]), info("s", shape=["n", "m", 4])],
                  ["y", "t", "y2", "t2", "z"], constants={"g": gamma, "b": beta, "c": bias},
                  imports=IMPORTS)  # fmt: skip
    y, total, y2, total2, z = run(from_onnx(proto), x, skip)
    np.testing.assert_allclose(total, x + skip + bias, rtol=1e-5)
    np.testing.assert_allclose(y, normed(x + skip + bias, gamma, beta), rtol=1e-4, atol=1e-5)
    both = x + skip
    np.testing.assert_allclose(total2, both, rtol=1e-5)
    np.testing.assert_allclose(y2, normed(both, gamma, beta), rtol=1e-4, atol=1e-5)
    wanted = both / np.sqrt((both**2).mean(-1, keepdims=True)) * gamma
    np.testing.assert_allclose(z, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_embeddings():
    ids, mask = np.array([[1, 4, 2]], "int32"), np.array([[1, 1, 0]], "int32")
    tables = {"w": uniform(5, 4), "p": uniform(7, 4, seed=1), "k": uniform(2, 4, seed=2),
              "g": uniform(4, seed=3), "b": uniform(4, seed=4)}  # fmt: skip
    infos = [info(name, "int32", ["n", "s"]) for name in ("i", "t", "m")]
    mod = fused("EmbedLayerNormalization", "i t w p k g b m", "y c", infos, tables, epsilon=1e-5)
    kinds = np.array([[0, 1, 1]], "int32")
    got, count = run(mod, ids, kinds, mask)
    total = tables["w"][ids] + tables["p"][:3] + tables["k"][kinds]
    np.testing.assert_allclose(got, normed(total, tables["g"], tables["b"], 1e-5), rtol=1e-4,
                               atol=1e-5)  # fmt: skip
    assert count.tolist() == [2]


def test_fused_activations_and_products():
    x, y = uniform(2, 3), uniform(4, 3, seed=1)
    nodes = [
        node("BiasGelu", "x b", "a", domain="com.microsoft"),
        node("QuickGelu", "x", "q", domain="com.microsoft"),
        node("FusedMatMul", "x y", "m", domain="com.microsoft", transB=1, alpha=0.5),
        node("FusedGemm", "x y b2", "f", domain="com.microsoft", transB=1, activation="LeakyRelu",
             activation_alpha=0.2),
    ]  # fmt: skip
    bias, more = uniform(3, seed=2), uniform(4, seed=3)
    proto = model(nodes, [info("x", shape=["n", 3]), info("y", shape=[4, 3])],
                  ["a", "q", "m", "f"], constants={"b": bias, "b2": more},
                  imports=IMPORTS)  # fmt: skip
    a, q, m, f = run(from_onnx(proto), x, y)
    erf = np.vectorize(__import__("math").erf)
    z = x + bias
    np.testing.assert_allclose(a, z * (1 + erf(z / 2**0.5)) / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(q, x / (1 + np.exp(-1.702 * x)), rtol=1e-4)
    np.testing.assert_allclose(m, x @ y.T / 2, rtol=1e-4, atol=1e-6)
    product = x @ y.T + more
    np.testing.assert_allclose(f, np.where(product > 0, product, 0.2 * product), rtol=1e-4,
                               atol=1e-6)  # fmt: skip


def test_an_unknown_activation_of_a_fused_operator():
    with pytest.raises(OnnxNodeError, match="activation: expected one of , Relu.* got 'Sine'"):
        fused("FusedGemm", "x y", "f", [info("x", shape=[2, 3]), info("y", shape=[3, 4])],
              activation="Sine")  # fmt: skip


def test_attributes_that_ask_for_nothing_may_be_written_out():
    infos = [info("x", shape=[1, 3, 4]), info("w", shape=[4, 12])]
    mod = fused("Attention", "x w", "f", infos, num_heads=2, do_rotary=0)
    assert run(mod, uniform(1, 3, 4), uniform(4, 12)).shape == (1, 3, 4)
    with pytest.raises(OnnxNodeError, match="its attribute do_rotary=1 is not supported"):
        fused("Attention", "x w", "f", infos, num_heads=2, do_rotary=1)
