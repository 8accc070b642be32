"""LegalizeOps: every rule against numpy or torch, by the reference interpreter."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import weft
from weft import relax
from weft.ir.op import Op
from weft.relax import op
from weft.relax.op.definition import FUNCTIONS
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRValueError, LegalizeError
from weft.tir.expr import Var as TirVar

RNG = np.random.default_rng(7)
X = RNG.uniform(0.1, 0.9, (2, 3, 4)).astype("float32")
Y = RNG.uniform(0.1, 0.9, (3, 1)).astype("float32")
IMG = RNG.normal(size=(2, 3, 6, 5)).astype("float32")
W = RNG.normal(size=(4, 3, 3, 2)).astype("float32")
VEC = RNG.normal(size=(3,)).astype("float32")
INTS = RNG.integers(-5, 6, (2, 3)).astype("int32")
SHIFT = RNG.integers(0, 4, (2, 3)).astype("int32")
BOOLS = RNG.integers(0, 2, (2, 3)).astype("bool")


def t(array):
    return torch.from_numpy(array)


def quantized(x, scale, zero_point):
    scaled = np.round(x / scale.astype("float32")[:, None, None]) + zero_point[:, None, None]
    return scaled.clip(-128, 127).astype("int8")


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


UNARY = {
    "abs": np.abs, "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "floor": np.floor, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "log": np.log, "negative": np.negative, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "erf": lambda x: torch.erf(t(x)).numpy(), "acosh": lambda x: np.arccosh(x),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary(name, compute):
    x = X + 1 if name == "acosh" else X
    got = compute(getattr(op, name), x)
    np.testing.assert_allclose(got, UNARY[name](x), rtol=1e-5, atol=1e-6)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "floor_divide": np.floor_divide, "mod": np.fmod, "floor_mod": np.mod, "power": np.power,
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal, "log_add_exp": np.logaddexp,
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary_broadcasts(name, compute):
    got = compute(getattr(op, name), X, Y)
    np.testing.assert_allclose(got, BINARY[name](X, Y), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "x", "y", "reference"),
    [
        ("bitwise_and", INTS, SHIFT, np.bitwise_and), ("bitwise_or", INTS, SHIFT, np.bitwise_or),
        ("bitwise_xor", INTS, SHIFT, np.bitwise_xor), ("left_shift", INTS, SHIFT, np.left_shift),
        ("right_shift", INTS, SHIFT, np.right_shift),
        ("logical_and", BOOLS, ~BOOLS, np.logical_and),
        ("logical_or", BOOLS, ~BOOLS, np.logical_or),
        ("logical_xor", BOOLS, ~BOOLS, np.logical_xor),
    ],
)  # fmt: skip
def test_integers_and_booleans(name, x, y, reference, compute):
    np.testing.assert_array_equal(compute(getattr(op, name), x, y), reference(x, y))


CASES = {
    "logical_not": (op.logical_not, [BOOLS], np.logical_not(BOOLS)),
    "bitwise_not": (op.bitwise_not, [INTS], ~INTS),
    "clip": (lambda x: op.clip(x, 0.2, 0.5), [X], X.clip(0.2, 0.5)),
    "where": (op.where, [BOOLS, INTS, SHIFT], np.where(BOOLS, INTS, SHIFT)),
    "ewise_fma": (op.ewise_fma, [X, X, X], X * X + X),
    "astype": (lambda x: op.astype(x, "int32"), [X * 9], (X * 9).astype("int32")),
    "sum": (lambda x: op.sum(x, 1), [X], X.sum(1)),
    "max": (lambda x: op.max(x, [0, 2], keepdims=True), [X], X.max((0, 2), keepdims=True)),
    "min": (op.min, [X], X.min()),
    "prod": (lambda x: op.prod(x, -1), [X], X.prod(-1)),
    "mean": (lambda x: op.mean(x, [1, 2]), [X], X.mean((1, 2))),
    "std": (lambda x: op.std(x, 1), [X], X.std(1)),
    "variance": (lambda x: op.variance(x, [1], True), [X], X.var(1, keepdims=True)),
    "argmax": (lambda x: op.argmax(x, 1), [X], X.argmax(1)),
    "argmin": (lambda x: op.argmin(x, -1, True), [X], X.argmin(-1, keepdims=True)),
    "cumsum": (lambda x: op.cumsum(x, 1), [X], X.cumsum(1)),
    "cumprod": (lambda x: op.cumprod(x), [X], X.cumprod()),
    "matmul": (op.matmul, [X, X.transpose(0, 2, 1).copy()], X @ X.transpose(0, 2, 1)),
    "nn.dense": (op.nn.dense, [X[0], X[1]], X[0] @ X[1].T),
    "einsum": (lambda a, b: op.einsum([a, b], "bij,bkj->bik"), [X, X],
               np.einsum("bij,bkj->bik", X, X)),
    "outer": (op.outer, [VEC, X[0, 0]], np.outer(VEC, X[0, 0])),
    "broadcast_to": (lambda x: op.broadcast_to(x, (2, 3, 4)), [Y], np.broadcast_to(Y, (2, 3, 4))),
    "reshape": (lambda x: op.reshape(x, (4, -1)), [X], X.reshape(4, -1)),
    "flatten": (op.flatten, [X], X.ravel()),
    "concat": (lambda a, b: op.concat([a, b], 1), [X, X[:, :1]], np.concatenate([X, X[:, :1]], 1)),
    "stack": (lambda a, b: op.stack([a, b], 1), [X, X], np.stack([X, X], 1)),
    "expand_dims": (lambda x: op.expand_dims(x, [0, -1]), [X], X[None, ..., None]),
    "permute_dims": (lambda x: op.permute_dims(x, [2, 0, 1]), [X], X.transpose(2, 0, 1)),
    "squeeze": (lambda x: op.squeeze(x, [1]), [Y], Y[:, 0]),
    "repeat": (lambda x: op.repeat(x, 2, 1), [X], X.repeat(2, 1)),
    "tile": (lambda x: op.tile(x, (2, 1)), [X], np.tile(X, (2, 1))),
    "flip": (lambda x: op.flip(x, 1), [X], X[:, ::-1]),
    "collapse_sum_to": (lambda x: op.collapse_sum_to(x, (3, 1)), [X],
                        X.sum(0).sum(1, keepdims=True)),
    "collapse_sum_like": (op.collapse_sum_like, [X, X[0]], X.sum(0)),
    "gather_elements": (lambda x, i: op.gather_elements(x, i, 1), [SHIFT, np.abs(INTS) % 3],
                        np.take_along_axis(SHIFT, np.abs(INTS) % 3, 1)),
    "gather_nd": (op.gather_nd, [X, np.array([[0, 1], [1, 2]])], X[[0, 1], [1, 2]]),
    "layout_transform": (lambda x: op.layout_transform(x, lambda i, j, k: [k // 2, i, j, k % 2]),
                         [X], X.reshape(2, 3, 2, 2).transpose(2, 0, 1, 3)),
    "one_hot": (lambda i: op.one_hot(i, relax.PrimValue(1), relax.PrimValue(0), 4), [SHIFT],
                np.eye(4, dtype="int64")[SHIFT]),
    "take": (lambda x, i: op.take(x, i, 1), [X, np.array([2, 0])], X[:, [2, 0]]),
    "strided_slice": (lambda x: op.strided_slice(x, [1, 2], [0, 1], [3, 4], [2, 1]), [X],
                      X[:, 0:3:2, 1:4]),
    "full": (lambda x: op.add(x, op.full((2, 3, 4), 1.5, "float32")), [X], X + 1.5),
    "full_like": (lambda x: op.full_like(x, 2.0), [X], np.full_like(X, 2)),
    "ones": (lambda x: op.add(x, op.ones((2, 3, 4), "float32")), [X], X + 1),
    "ones_like": (op.ones_like, [X], np.ones_like(X)),
    "zeros": (lambda x: op.add(x, op.zeros((2, 3, 4), "float32")), [X], X),
    "zeros_like": (op.zeros_like, [X], np.zeros_like(X)),
    "arange": (lambda x: op.add(x, op.arange(1, 5, dtype="float32")), [X],
               X + np.arange(1, 5, dtype="float32")),
    "eye": (lambda x: op.add(x, op.eye(3, 4, 1)), [X], X + np.eye(3, 4, 1, "float32")),
    "eye_like": (lambda x: op.eye_like(x), [X[0]], np.eye(3, 4, dtype="float32")),
    "tril": (lambda x: op.tril(x, -1), [X], np.tril(X, -1)),
    "triu": (lambda x: op.triu(x, 1), [X], np.triu(X, 1)),
    "nn.relu": (op.nn.relu, [IMG], IMG.clip(0)),
    "nn.relu6": (op.nn.relu6, [IMG * 5], (IMG * 5).clip(0, 6)),
    "nn.leakyrelu": (lambda x: op.nn.leakyrelu(x, 0.1), [IMG], np.where(IMG > 0, IMG, IMG * 0.1)),
    "nn.prelu": (op.nn.prelu, [IMG, VEC], F.prelu(t(IMG), t(VEC)).numpy()),
    "nn.softplus": (op.nn.softplus, [IMG], F.softplus(t(IMG)).numpy()),
    "nn.gelu": (op.nn.gelu, [IMG], F.gelu(t(IMG)).numpy()),
    "nn.gelu_tanh": (op.nn.gelu_tanh, [IMG], F.gelu(t(IMG), approximate="tanh").numpy()),
    "nn.selu": (op.nn.selu, [IMG], F.selu(t(IMG)).numpy()),
    "nn.silu": (op.nn.silu, [IMG], F.silu(t(IMG)).numpy()),
    "nn.softmax": (lambda x: op.nn.softmax(x, 1), [IMG], softmax(IMG, 1)),
    "nn.log_softmax": (op.nn.log_softmax, [IMG], np.log(softmax(IMG, -1))),
    "nn.conv1d": (lambda x, w: op.nn.conv1d(x, w, padding=1), [IMG[:, :, 0], W[:, :, 0]],
                  F.conv1d(t(IMG[:, :, 0].copy()), t(W[:, :, 0].copy()), padding=1).numpy()),
    "nn.conv2d": (lambda x, w: op.nn.conv2d(x, w, strides=(2, 1), padding=(1, 0)), [IMG, W],
                  F.conv2d(t(IMG), t(W), stride=(2, 1), padding=(1, 0)).numpy()),
    "nn.conv3d": (op.nn.conv3d, [IMG[:, None, :2, :3], W[:1, None, :2, :2]],
                  F.conv3d(t(IMG[:, None, :2, :3].copy()), t(W[:1, None, :2, :2].copy())).numpy()),
    "nn.conv1d_transpose": (
        lambda x, w: op.nn.conv1d_transpose(x, w, strides=2, output_padding=1),
        [IMG[:, :, 0], W[:3, :2, :, 0]],
        F.conv_transpose1d(t(IMG[:, :, 0].copy()), t(W[:3, :2, :, 0].copy()), stride=2,
                           output_padding=1).numpy()),
    "nn.conv2d_transpose": (
        lambda x, w: op.nn.conv2d_transpose(x, w, padding=1), [IMG, W[:3]],
        F.conv_transpose2d(t(IMG), t(W[:3].copy()), padding=1).numpy()),
    "nn.max_pool1d": (lambda x: op.nn.max_pool1d(x, 2, 2), [IMG[0]],
                      F.max_pool1d(t(IMG[0]), 2, 2).numpy()),
    "nn.max_pool2d": (lambda x: op.nn.max_pool2d(x, 2, 2), [IMG],
                      F.max_pool2d(t(IMG), 2, 2).numpy()),
    "nn.max_pool3d": (lambda x: op.nn.max_pool3d(x, 2, 1), [IMG[None]],
                      F.max_pool3d(t(IMG[None]), 2, 1).numpy()),
    "nn.avg_pool1d": (lambda x: op.nn.avg_pool1d(x, 2, 2), [IMG[0]],
                      F.avg_pool1d(t(IMG[0]), 2, 2).numpy()),
    "nn.avg_pool2d": (lambda x: op.nn.avg_pool2d(x, 2, 2, 1, count_include_pad=True), [IMG],
                      F.avg_pool2d(t(IMG), 2, 2, 1).numpy()),
    "nn.avg_pool3d": (lambda x: op.nn.avg_pool3d(x, 2, 1), [IMG[None]],
                      F.avg_pool3d(t(IMG[None]), 2, 1).numpy()),
    "nn.adaptive_avg_pool1d": (lambda x: op.nn.adaptive_avg_pool1d(x, 2), [IMG[0]],
                               F.adaptive_avg_pool1d(t(IMG[0]), 2).numpy()),
    "nn.adaptive_avg_pool2d": (lambda x: op.nn.adaptive_avg_pool2d(x, (1, 1)), [IMG],
                               IMG.mean((2, 3), keepdims=True)),
    "nn.adaptive_avg_pool3d": (lambda x: op.nn.adaptive_avg_pool3d(x, 1), [IMG[None]],
                               IMG[None].mean((2, 3, 4), keepdims=True)),
    "nn.layer_norm": (lambda x, g, b: op.nn.layer_norm(x, g, b, [-1]),
                      [X, X[0, 0], X[0, 1]],
                      F.layer_norm(t(X), (4,), t(X[0, 0]), t(X[0, 1])).numpy()),
    "nn.rms_norm": (lambda x, w: op.nn.rms_norm(x, w, [-1]), [X, X[0, 0]],
                    X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-5) * X[0, 0]),
    "nn.group_norm": (
        lambda x, g, b: op.nn.group_norm(x, g, b, 3, 1, [2, 3]), [IMG, VEC, VEC],
        F.group_norm(t(IMG), 3, t(VEC), t(VEC)).numpy()),
    "nn.attention": (
        op.nn.attention, [IMG, IMG, IMG],
        F.scaled_dot_product_attention(*[t(IMG).permute(0, 2, 1, 3)] * 3).permute(0, 2, 1, 3)
        .numpy()),
    "nn.cross_entropy_with_logits": (op.nn.cross_entropy_with_logits, [X[0], X[1]],
                                     -(X[0] * X[1]).sum() / 3),
    "nn.nll_loss": (op.nn.nll_loss, [X[0], np.array([1, 3, 0])],
                    F.nll_loss(t(X[0]), torch.tensor([1, 3, 0])).numpy()),
    "image.resize2d": (lambda x: op.image.resize2d(x, (9, 4)), [IMG],
                       F.interpolate(t(IMG), (9, 4), mode="bilinear").numpy()),
    "quantize": (lambda x, s, z: op.quantize(x, s, z, axis=1),
                 [IMG, np.abs(VEC) + 0.01, np.array([3, -2, 0], "int8")],
                 quantized(IMG, np.abs(VEC) + 0.01, np.array([3, -2, 0]))),
    "dequantize": (lambda x: op.dequantize(x, relax.const(0.5), relax.const(2, "int8")),
                   [INTS.astype("int8")], (INTS - 2) * np.float32(0.5)),
    "nn.pad": (lambda x: op.nn.pad(x, (0, 0, 1, 2, 0, 1)), [X],
               np.pad(X, ((0, 0), (1, 2), (0, 1)))),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_operator_against_reference(name, compute):
    make, arrays, expected = CASES[name]
    got = compute(make, *[np.ascontiguousarray(a) for a in arrays])
    assert got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-6)


NOT_LEGALIZED = {
    "dist.annotate_sharding", "dist.call_tir_local_view", "dist.redistribute",
    "dist.redistribute_replica_to_shard",  # nothing places tensors on several devices yet
    "wrap_param",  # ToMixedPrecision removes it
}  # fmt: skip


def test_every_tensor_operator_has_a_rule_or_a_reason():
    tensor_operators = {
        name
        for name in FUNCTIONS
        if not name.startswith(("memory.", "vm.", "builtin.", "call_", "invoke_"))
        and Op.get(f"relax.{name}" if name != "call_packed" else "relax.add").get_attr("attrs")
        is not None
        and Op.get(f"relax.{name}").get_attr("function").__module__ != "weft.relax.op.base"
    } - {"call_packed"}
    rows = {name: Op.get(f"relax.{name}").attributes for name in tensor_operators}
    lowered = {name for name, row in rows.items() if {"FLegalize", "packed"} & set(row)}
    assert tensor_operators - lowered == NOT_LEGALIZED


def test_view_of_memory(infer):
    info = TensorStructInfo((2, 3), "float32")
    view = op.memory.view
    assert infer(lambda x: view(x, (6,)), info) == TensorStructInfo((6,), "float32")
    assert infer(lambda x: view(x, None, "int32"), info) == TensorStructInfo((2, 3), "int32")
    assert infer(lambda x: view(x, (2,), "int64", 8), info) == TensorStructInfo((2,), "int64")
    with pytest.raises(IRValueError, match="the view needs 28 bytes, the data has 24"):
        infer(lambda x: view(x, (6,), None, 4), info)


def test_split_gives_a_tuple(build, evaluate):
    mod = build(lambda x: op.split(x, [1, 3], axis=2), TensorStructInfo((2, 3, 4)))
    parts = evaluate(relax.transform.LegalizeOps()(mod), X)
    for part, expected in zip(parts, np.split(X, [1, 3], 2), strict=True):
        np.testing.assert_array_equal(part, expected)


def test_batch_norm_for_inference(build, evaluate):
    infos = [TensorStructInfo((2, 3, 6, 5))] + [TensorStructInfo((3,))] * 4
    mod = build(lambda *a: op.nn.batch_norm(*a, axis=1, training=False), *infos)
    var = np.abs(VEC) + 1
    out, _, _ = evaluate(relax.transform.LegalizeOps()(mod), IMG, VEC, VEC, VEC, var)
    expected = F.batch_norm(t(IMG), t(VEC), t(var), t(VEC), t(VEC)).numpy()
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_symbolic_shapes_serve_every_size(build, evaluate):
    n = TirVar("n", "int64")
    infos = [TensorStructInfo((n, 4)), TensorStructInfo((n, 4))]
    mod = relax.transform.LegalizeOps()(
        build(lambda x, y: op.nn.softmax(op.concat([x, y], 0) + op.concat([y, x], 0)), *infos)
    )
    for rows in (1, 3):
        x, y = X[0][:rows], X[1][:rows]
        expected = softmax(np.concatenate([x, y]) + np.concatenate([y, x]), -1)
        np.testing.assert_allclose(evaluate(mod, x, y), expected, rtol=1e-5)


def test_scalar_constant_becomes_a_number_in_the_prim_func(build):
    mod = relax.transform.LegalizeOps()(build(lambda x: op.add(x, 1.0), TensorStructInfo((2,))))
    call = mod["main"].body.blocks[0].bindings[0].value
    assert len(call.args[1].fields) == 1


def test_equal_functions_are_shared_and_private(build):
    info = TensorStructInfo((2, 3))
    mod = build(lambda x: op.nn.relu(op.exp(op.nn.relu(x))), info)
    mod = relax.transform.LegalizeOps()(mod)
    names = sorted(var.name_hint for var in mod.functions)
    assert names == ["main", "relu", "tir_exp"]
    assert "global_symbol" not in mod["relu"].attrs
    assert mod["relu"].provenance == "te"


def test_unknown_shapes_stay(build):
    mod = build(op.nn.relu, TensorStructInfo(None, "float32", ndim=2))
    assert relax.transform.LegalizeOps()(mod) is mod


def test_custom_rule_wins(build):
    def rule(bb, call):
        return relax.op.call_dps_packed("env.relu", call.args, call.struct_info)

    mod = build(op.nn.relu, TensorStructInfo((2, 3)))
    mod = relax.transform.LegalizeOps({"relax.nn.relu": rule})(mod)
    assert mod["main"].body.blocks[0].bindings[0].value.op is Op.get("relax.call_dps_packed")


@pytest.mark.parametrize("exclusive", [False, True])
def test_scans_are_linear_and_take_empty_axes(exclusive):
    n = TirVar("n", "int64")
    bb = relax.BlockBuilder()
    x = relax.Var("x", TensorStructInfo([2, n], "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.cumsum(x, 1, exclusive=exclusive)))
    mod = relax.transform.LegalizeOps()(bb.get())
    text = mod["cumsum"].script()  # one ordered axis, no reduction over each prefix
    assert ("T.axis.scan(n, k)" in text, "T.axis.reduce" in text) == (True, False)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    for extent in (0, 1, 5):
        data = RNG.normal(size=(2, extent)).astype("float32")
        expected = data.cumsum(1) - (data if exclusive else 0)
        found = machine["main"](weft.nd.array(data)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_slices_of_one_shape_by_other_indices_have_sizes_of_their_own():
    x = relax.Var("x", TensorStructInfo([4, 6], "float32"))
    pieces = [((0, 1), (2, 5)), ((1, 0), (4, 2))]
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            found = [
                bb.emit(op.dynamic_strided_slice(x, *map(indices, (begin, end, (1, 1)))))
                for begin, end in pieces
            ]
            out = bb.emit_output(relax.Tuple(found))
        bb.emit_func_output(out)
    data = RNG.normal(size=(4, 6)).astype("float32")
    machine = relax.VirtualMachine(relax.build(bb.get(), "llvm"), weft.cpu())
    for got, (begin, end) in zip(machine["main"](weft.nd.array(data)), pieces, strict=True):
        expected = data[begin[0] : end[0], begin[1] : end[1]]
        np.testing.assert_array_equal(got.numpy(), expected)


def indices(values):
    return relax.const(np.array(values, "int64"))


def test_operators_that_a_rule_uses_are_lowered_too():
    def rule(bb, call):
        negated = bb.emit(op.negative(call.args[1]))
        return op.subtract(call.args[0], op.multiply(negated, call.args[0]))

    bb = relax.BlockBuilder()
    x = relax.Var("x", TensorStructInfo([3], "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.add(x, x))
        bb.emit_func_output(out)
    mod = relax.transform.LegalizeOps({"relax.add": rule})(bb.get())
    assert relax.analysis.well_formed(mod)
    calls = relax.analysis.all_global_vars(mod["main"])
    assert sorted(gvar.name_hint for gvar in calls) == ["multiply", "subtract", "tir_negative"]
    found = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())["main"](weft.nd.array(VEC))
    np.testing.assert_allclose(found.numpy(), VEC + VEC * VEC, rtol=1e-6)


def test_an_error_in_a_rule_leaves_the_builder_usable():
    bb = relax.BlockBuilder()
    x = relax.Var("x", TensorStructInfo([3], "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.exp(x)))

    def rule(bb, call):
        raise IRValueError("no")

    with pytest.raises(IRValueError, match="no"):
        relax.transform.LegalizeOps({"relax.exp": rule})(bb.get())


@pytest.mark.parametrize(("center", "scale"), [(False, True), (True, False), (False, False)])
def test_norms_leave_out_what_they_do_not_center_or_scale(center, scale, compute):
    weight, bias = X[0, 0] + 1, X[0, 1]
    got = compute(
        lambda x, g, b: op.nn.layer_norm(x, g, b, [-1], center=center, scale=scale), X, weight, bias
    )
    given = (t(weight) if scale else None, t(bias) if center else None)
    np.testing.assert_allclose(got, F.layer_norm(t(X), (4,), *given).numpy(), rtol=2e-5, atol=2e-6)
    got = compute(
        lambda x, g, b: op.nn.group_norm(x, g, b, 3, 1, [2, 3], center=center, scale=scale),
        IMG, VEC, VEC,
    )  # fmt: skip
    given = (t(VEC) if scale else None, t(VEC) if center else None)
    np.testing.assert_allclose(got, F.group_norm(t(IMG), 3, *given).numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (1.5, "float32", "int32", 1),
        (-1.5, "float16", "int8", -1),
        (300, "int32", "uint8", 44),
        (2**53 + 1, "int64", "int64", 2**53 + 1),
        (0.0, "float32", "bool", False),
        (0.1, "float64", "float32", np.float32(0.1)),
    ],
)
def test_a_constant_number_is_converted_at_once(value, source, target, expected):
    mod = _constant_cast(relax.const(value, source), target)
    made = relax.transform.LegalizeOps()(mod)["main"].body.blocks[0].bindings[0].value
    assert isinstance(made, relax.Constant)
    assert made.data.numpy() == expected
    assert made.data.dtype == target


@pytest.mark.parametrize(("value", "expected"), [(float("nan"), 0), (1e20, 2**31 - 1)])
def test_a_constant_beyond_the_type_is_left_to_the_kernel(value, expected):
    mod = _constant_cast(relax.const(value, "float32"), "int32")
    assert len(relax.transform.LegalizeOps()(mod).functions) == 2
    machine = relax.VirtualMachine(relax.build(mod, target="llvm"), weft.cpu())
    assert machine["main"]().numpy() == expected


def _constant_cast(constant, target):
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        builder.emit_func_output(builder.emit(op.astype(constant, target)))
    return builder.get()


@pytest.mark.parametrize(
    ("result", "found"),
    [
        (lambda x: relax.op.astype(x, "int32"), 'dtype="int32"'),
        (lambda x: relax.op.reshape(x, (3, 2)), r"\(3, 2\)"),
    ],
)
def test_a_rule_whose_result_is_of_another_type_is_refused(result, found, build):
    mod = build(relax.op.exp, TensorStructInfo((2, 3), "float32"))
    legalize = relax.transform.LegalizeOps({"relax.exp": lambda bb, call: result(call.args[0])})
    message = rf"LegalizeOps: the rule of relax\.exp: expected .*\(2, 3\).* got .*{found}"
    with pytest.raises(LegalizeError, match=message):
        legalize(mod)
