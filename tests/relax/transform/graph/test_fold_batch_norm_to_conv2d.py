"""FoldBatchnormToConv2D: weights and a bias in the place of a batch norm."""

import numpy as np
import pytest

from weft import relax
from weft.ir.transform import Sequential
from weft.relax import op
from weft.relax.transform import DeadCodeElimination, FoldBatchnormToConv2D, FoldConstant
from weft.script import ir as I
from weft.script import relax as R

RNG = np.random.default_rng(0)


def constant(*shape, low=-1.0):
    return relax.const(RNG.uniform(low, 1.0, shape).astype("float32"))


def model(weight=None, axis=1, shape=(2, 3, 5, 5), use_twice=False, **attrs):
    """A batch norm of a convolution with constant parameters."""
    norm = {name: attrs.pop(name) for name in ("scale", "center") if name in attrs}
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    weight = constant(4, 3, 3, 3) if weight is None else weight
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(op.nn.conv2d(x, weight, **attrs))
            made = bb.emit(
                op.nn.batch_norm(
                    conv, constant(4), constant(4), constant(4), constant(4, low=0.0), axis=axis,
                    epsilon=1e-3, training=False, **norm,
                )
            )  # fmt: skip
            out = bb.emit(relax.TupleGetItem(made, 0))
            out = bb.emit_output(op.add(out, conv) if use_twice else op.nn.relu(out))
        bb.emit_func_output(out)
    return bb.get(), RNG.standard_normal(shape).astype("float32")


def test_the_norm_becomes_a_factor_and_a_bias(check, check_native):
    weight = relax.const(np.arange(36, dtype="float32").reshape(4, 1, 3, 3))
    gamma, beta, mean, variance = [
        relax.const(np.array(values, "float32"))
        for values in ([1, 2, 3, 4], [0, 1, 0, -1], [5, 4, 3, 2], [1, 4, 9, 16])
    ]

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 1, 5, 5), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, weight, padding=[1, 1])
                b = R.nn.batch_norm(
                    a, gamma, beta, mean, variance, axis=1, epsilon=0.5, training=False
                )
                out = b[0]
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((1, 1, 5, 5), "float32")):
            with R.dataflow():
                scale = R.divide(gamma, R.sqrt(R.add(variance, R.const(0.5, "float32"))))
                factor = R.reshape(scale, (4, 1, 1, 1))
                made = R.nn.conv2d(x, R.multiply(weight, factor), padding=[1, 1])
                bias = R.subtract(beta, R.multiply(mean, scale))
                out = R.add(made, R.reshape(bias, (1, 4, 1, 1)))
                R.output(out)
            return out

    fold = Sequential([FoldBatchnormToConv2D(), DeadCodeElimination()])
    made = check(fold, Before, Expected)
    check_native(Before, made, np.ones((1, 1, 5, 5), "float32"), tolerance=1e-4)


@pytest.mark.parametrize(
    "attrs",
    [
        {},
        {"scale": False},
        {"center": False},
        {"strides": 2, "padding": 1},
        {"weight": constant(4, 1, 3, 3), "shape": (1, 2, 5, 5), "groups": 2},
        {
            "weight": constant(3, 3, 3, 4), "shape": (2, 5, 5, 3), "axis": -1,
            "data_layout": "NHWC", "kernel_layout": "HWIO",
        },
        {"weight": constant(4, 3, 3, 3), "axis": 3, "out_layout": "NHWC"},
    ],
)  # fmt: skip
def test_weights_take_the_norm(attrs, check_native):
    before, data = model(**attrs)
    made = FoldConstant()(FoldBatchnormToConv2D()(before))
    values = relax.analysis.get_var2val(made["main"]).values()
    assert [value.op.name for value in values] == ["relax.nn.conv2d", "relax.add", "relax.nn.relu"]
    check_native(before, made, data, tolerance=1e-4)
    assert FoldBatchnormToConv2D()(made) is made


@pytest.mark.parametrize(
    "attrs",
    [
        {"use_twice": True},
        {"shape": (2, 3, 6, 6), "axis": 2},  # another axis, as large as the channels
        {"weight": relax.Var("x", relax.TensorStructInfo((4, 3, 3, 3), "float32"))},
    ],
)
def test_what_is_left_alone(attrs):
    if isinstance(attrs.get("weight"), relax.Var):
        before = variable_weights(attrs["weight"])
    else:
        before, _ = model(**attrs)
    assert FoldBatchnormToConv2D()(before) is before


def variable_weights(weight):
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 5, 5), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, weight]):
        conv = bb.emit(op.nn.conv2d(x, weight))
        stats = [constant(4) for _ in range(4)]
        made = bb.emit(op.nn.batch_norm(conv, *stats, axis=1))
        bb.emit_func_output(relax.TupleGetItem(made, 0))
    return bb.get()


def test_a_convolution_of_another_block_is_not_reached_for():
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 5, 5), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit_output(op.nn.conv2d(bb.emit(op.exp(x)), constant(4, 3, 3, 3)))
        sign = bb.emit(op.sign(x))  # between the blocks
        with bb.dataflow():
            norm = bb.emit(op.nn.batch_norm(conv, *[constant(4) for _ in range(4)], axis=1))
            out = bb.emit_output(relax.TupleGetItem(norm, 0))
        bb.emit_func_output(relax.Tuple([out, sign]))
    before = bb.get()
    assert FoldBatchnormToConv2D()(before) is before


def test_a_norm_whose_result_is_taken_twice_is_folded_once(check_native):
    """The importer takes the result anew for each user: a block's and the residual after it."""
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 5, 5), "float32"))
    parameters = [constant(4), constant(4), constant(4), constant(4, low=0.0)]
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(op.nn.conv2d(x, constant(4, 3, 3, 3)))
            norm = bb.emit(op.nn.batch_norm(conv, *parameters, axis=1, training=False))
            first = bb.emit(op.nn.relu(relax.TupleGetItem(norm, 0)))
            out = bb.emit_output(op.add(first, relax.TupleGetItem(norm, 0)))
        bb.emit_func_output(out)
    mod, data = bb.get(), RNG.standard_normal((2, 3, 5, 5)).astype("float32")
    after = FoldBatchnormToConv2D()(mod)
    assert after.script().count("R.nn.conv2d(") == 1
    assert "batch_norm" not in after.script()
    check_native(mod, after, data, tolerance=1e-5)
