"""Operators on one tensor or two, shapes, reductions, sorting, new tensors: against numpy."""

import math

import numpy as np
import pytest

from weft import tir
from weft.relax.frontend import nn
from weft.relax.frontend.nn import op

pytestmark = pytest.mark.sampled(3)


def erf(x):
    return np.vectorize(math.erf)(x).astype(x.dtype)


def soft(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


UNARY = {
    "negative": (op.negative, np.negative),
    "square": (op.square, np.square),
    "sqrt": (lambda x: op.sqrt(op.square(x)), np.abs),
    "exp": (op.exp, np.exp),
    "tanh": (op.tanh, np.tanh),
    "sigmoid": (op.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "relu": (op.relu, lambda x: np.maximum(x, 0)),
    "silu": (op.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (op.gelu, lambda x: x * (1 + erf(x / np.float32(2**0.5))) / 2),
    "gelu tanh": (
        lambda x: op.gelu(x, "tanh"),
        lambda x: x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + 0.044715 * x**3))) / 2,
    ),
    "softplus": (
        lambda x: op.softplus(x, 2.0, 1.0),
        lambda x: np.where(2 * x > 1, x, np.log1p(np.exp(2 * x)) / 2),
    ),
    "softmax": (op.softmax, lambda x: soft(x, -1)),
    "softmax of axis 0": (lambda x: op.softmax(x, 0), lambda x: soft(x, 0)),
    "astype": (lambda x: op.astype(x, "int32"), lambda x: x.astype("int32")),
    "unsqueeze": (lambda x: op.unsqueeze(x, 1), lambda x: x[:, None]),
    "squeeze": (lambda x: op.squeeze(op.unsqueeze(x, 1), 1), lambda x: x),
    "broadcast_to": (
        lambda x: op.broadcast_to(x, [2, *x.shape]), lambda x: np.broadcast_to(x, (2, *x.shape)),
    ),
    "permute_dims": (op.permute_dims, np.transpose),
    "permute": (lambda x: op.permute(x, [1, 0]), np.transpose),
    "reshape": (lambda x: op.reshape(x, [-1, 2]), lambda x: x.reshape(-1, 2)),
    "repeat": (lambda x: op.repeat(x, 2, 1), lambda x: x.repeat(2, 1)),
    "repeat flat": (lambda x: op.repeat(x, 2), lambda x: x.repeat(2)),
    "triu": (lambda x: op.triu(x, 1), lambda x: np.triu(x, 1)),
    "pad": (lambda x: op.pad(x, [1, 0, 2, 1], value=7), lambda x: np.pad(
        x, [(1, 0), (2, 1)], constant_values=7)),
    "pad reflected": (lambda x: op.pad(x, [0, 0, 1, 1], "reflect"), lambda x: np.pad(
        x, [(0, 0), (1, 1)], "reflect")),
    "sum": (lambda x: op.sum(x, axis=[0, 1], keepdims=True), lambda x: x.sum(keepdims=True)),
    "sum of all": (op.sum, np.sum),
    "max": (lambda x: op.max(x, 1), lambda x: x.max(1)),
    "min": (lambda x: op.min(x, 0, True), lambda x: x.min(0, keepdims=True)),
    "cumsum": (lambda x: op.cumsum(x, 1), lambda x: x.cumsum(1)),
    "cumsum flat": (op.cumsum, np.cumsum),
    "cumsum exclusive": (
        lambda x: op.cumsum(x, 0, exclusive=True), lambda x: x.cumsum(0) - x,
    ),
    "cumsum of a type": (
        lambda x: op.cumsum(x, 0, dtype="float64"), lambda x: x.cumsum(0, dtype="float64"),
    ),
    "sort": (op.sort, np.sort),
    "sort falling": (lambda x: op.sort(x, 0, True), lambda x: -np.sort(-x, 0)),
    "argsort": (op.argsort, lambda x: np.argsort(x).astype("int32")),
    "argsort int64": (
        lambda x: op.argsort(x, 0, True, "int64"), lambda x: np.argsort(-x, 0),
    ),
    "topk values": (lambda x: op.topk(x, 2, ret_type="values"), lambda x: -np.sort(-x)[:, :2]),
    "topk indices": (
        lambda x: op.topk(x, 2, ret_type="indices", largest=False),
        lambda x: np.argsort(x)[:, :2].astype("int32"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dims", [(), ([3, "n"],)], ids=["static", "symbolic"])
def test_one_tensor(name, dims, apply, random):
    if dims and name in ("reshape",):
        dims = (["n", 4],)
    function, reference = UNARY[name]
    x = random(3, 4)
    found, wanted = apply(function, x, dims=dims), reference(x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


BINARY = {
    "add": (op.add, np.add),
    "subtract": (op.subtract, np.subtract),
    "multiply": (op.multiply, np.multiply),
    "divide": (op.divide, np.divide),
    "maximum": (op.maximum, np.maximum),
    "minimum": (op.minimum, np.minimum),
    "less": (op.less, np.less),
    "less_equal": (op.less_equal, np.less_equal),
    "greater": (op.greater, np.greater),
    "greater_equal": (op.greater_equal, np.greater_equal),
    "equal": (op.equal, np.equal),
    "not_equal": (op.not_equal, np.not_equal),
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((2, 1, 4), (3, 1)), ((), (2,)), ((0,), ())])
def test_two_tensors(name, shapes, apply, random):
    function, reference = BINARY[name]
    x, y = (np.asarray(random(*shape)).round() for shape in shapes)
    x, y = x.astype("float32"), y.astype("float32") + np.float32(0.25) * (name == "divide")
    found = apply(function, x, y)
    wanted = np.asarray(reference(x, y))
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_numbers_beside_a_tensor(name, apply, random):
    function, reference = BINARY[name]
    x = random(5).round()
    left, right = apply(lambda x: (function(1, x + 0.5), function(x, 2)), x)
    np.testing.assert_allclose(left, reference(np.float32(1), x + np.float32(0.5)), rtol=1e-6)
    np.testing.assert_allclose(right, reference(x, np.float32(2)), rtol=1e-6)


def test_concat_split_chunk(apply, random):
    x, y = random(2, 6), random(3, 6)
    joined, (a, b), (c, d, e), (f, g) = apply(
        lambda x, y: (op.concat([x, y], 0), op.split(x, 2, 1), op.split(x, [1, 3], axis=1),
                      op.chunk(x, 2, dim=1)), x, y,
    )  # fmt: skip
    np.testing.assert_array_equal(joined, np.concatenate([x, y]))
    for part, wanted in zip((a, b, c, d, e, f, g), (
        x[:, :3], x[:, 3:], x[:, :1], x[:, 1:3], x[:, 3:], x[:, :3], x[:, 3:],
    ), strict=True):  # fmt: skip
        np.testing.assert_array_equal(part, wanted)


def test_where_takes_conditions_of_numbers(apply, random):
    x, y, mask = random(4), random(4), np.array([0, 1, 2, 0], "int32")
    np.testing.assert_array_equal(apply(op.where, mask, x, y), np.where(mask, x, y))
    np.testing.assert_array_equal(
        apply(lambda x, y: op.where(op.less(x, y), x, y), x, y), np.minimum(x, y)
    )


def test_take(apply, random):
    x, rows = random(5, 3), np.array([[4, 0], [1, 1]], "int64")
    np.testing.assert_array_equal(apply(lambda x, i: op.take(x, i, 0), x, rows), x[rows])
    flat = x.ravel()
    np.testing.assert_array_equal(apply(lambda x, i: op.take(x, i), flat, rows), flat[rows])


def test_topk_of_both(apply, random):
    x = random(3, 7)
    values, indices = apply(lambda x: op.topk(x, 3), x)
    np.testing.assert_array_equal(values, -np.sort(-x)[:, :3])
    np.testing.assert_array_equal(np.take_along_axis(x, indices.astype("int64"), 1), values)


def test_new_tensors(apply, export):
    x = np.zeros((2, 3), "float32")
    found = apply(
        lambda x: (op.zeros(x.shape), op.ones([2], "int32"), op.full(x.shape, 1.5),
                   op.full([2], tir.FloatImm("float32", 2)), op.full([2], 3, "int64"),
                   op.full([2], nn.Tensor.from_scalar(4, "float32"))),
        x, dims=(["n", 3],),
    )  # fmt: skip
    wanted = (np.zeros_like(x), np.ones(2, "int32"), np.full((2, 3), np.float32(1.5)),
              np.full(2, np.float32(2)), np.full(2, 3), np.full(2, np.float32(4)))  # fmt: skip
    for mine, its in zip(found, wanted, strict=True):
        assert mine.dtype == its.dtype
        np.testing.assert_array_equal(mine, its)
    with pytest.raises(TypeError, match="full: fill_value: expected an nn.Tensor, got str"):
        export(lambda x: op.full([2], "1"), nn.spec.Tensor([2], "float32"))


def test_empty_has_shape_and_type(apply):
    made = apply(lambda x: op.empty([2, 3], "int32"), np.zeros(1, "float32"))
    assert (made.shape, made.dtype) == ((2, 3), np.int32)


def test_names_of_results(export):
    mod = export(lambda x: op.relu(op.add(x, x, name="twice")), nn.spec.Tensor(["n"], "float32"))
    names = [binding.var.name_hint for binding in mod["main"].body.blocks[0].bindings]
    assert names == ["twice", "relu", "gv"]


def test_a_transposed_linear_weight_is_named_after_the_matmul(export):
    linear = nn.Linear(4, 3, bias=False)
    holder = nn.Module()
    holder.linear_7 = linear
    mod, _ = holder_exported(holder, linear)
    assert "matmul_7_weight" in mod.script()


def holder_exported(holder, linear):
    holder.forward = lambda x: linear(x)
    return holder.export_tvm({"forward": {"x": nn.spec.Tensor([1, 4], "float32")}})


@pytest.mark.parametrize("op_type", ["sum", "max"])
def test_ccl_operators_are_emitted(export, op_type):
    mod = export(
        lambda x: (op.ccl_allreduce(x, op_type), op.ccl_allgather(x, 2),
                   op.ccl_broadcast_from_worker0(x)),
        nn.spec.Tensor([4], "float32"),
    )  # fmt: skip
    text = mod.script()
    assert f'R.ccl.allreduce(x0, op_type="{op_type}", in_group=True)' in text
    assert "R.ccl.broadcast_from_worker0" in text
    assert mod["main"].ret_struct_info.fields[1].shape.values[0] == 8


def test_nn_has_what_op_has():
    for name in op.__all__:
        assert getattr(nn, name) is getattr(op, name)
