"""ToMixedPrecision: before and after by class of operator, and random graphs in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from weft import relax
from weft.ir import assert_structural_equal
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.analysis import well_formed
from weft.relax.reference import run
from weft.relax.transform import ToMixedPrecision
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRValueError


def names(trait):
    return {name for name in Op.list_op_names() if has(Op.get(name), trait)}


def test_the_classes_of_operators():
    always = names(Trait.NARROW)
    assert {"relax.matmul", "relax.nn.conv2d", "relax.nn.conv1d_transpose"} <= always
    follow = names(Trait.FOLLOWS | Trait.MOVES)
    assert {"relax.add", "relax.nn.relu", "relax.reshape", "relax.nn.max_pool2d"} <= follow
    never = {
        "relax.exp", "relax.log", "relax.power", "relax.sum", "relax.mean", "relax.nn.softmax",
        "relax.nn.log_softmax", "relax.nn.layer_norm", "relax.nn.rms_norm", "relax.nn.batch_norm",
        "relax.nn.nll_loss", "relax.nn.cross_entropy_with_logits", "relax.cumsum",
    }  # fmt: skip
    assert not never & (always | follow)
    assert not always & follow


def test_what_is_between_products_is_narrow():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.nn.relu(a)
                c = R.matmul(b, w)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                x16 = R.astype(x, "float16")
                w16 = R.astype(w, "float16")
                a = R.matmul(x16, w16, out_dtype="float32")
                a16 = R.astype(a, "float16")
                b = R.nn.relu(a16)
                c = R.matmul(b, w16, out_dtype="float32")
                R.output(c)
            return c

    assert_structural_equal(ToMixedPrecision()(Before), Expected)


def test_sums_in_the_narrow_type():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                c = R.matmul(a, w)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                x16 = R.astype(x, "bfloat16")
                w16 = R.astype(w, "bfloat16")
                a = R.matmul(x16, w16, out_dtype="bfloat16")
                b = R.matmul(a, w16, out_dtype="bfloat16")
                c = R.astype(b, "float32")
                R.output(c)
            return c

    assert_structural_equal(ToMixedPrecision("bfloat16", dtype="bfloat16")(Before), Expected)


def test_softmax_and_what_others_read_stay():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.nn.relu(a)
                s = R.nn.softmax(b)
                c = R.matmul(s, w)
                d = R.add(b, c)
                R.output(d)
            return d

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                x16 = R.astype(x, "float16")
                w16 = R.astype(w, "float16")
                a = R.matmul(x16, w16, out_dtype="float32")
                b = R.nn.relu(a)
                s = R.nn.softmax(b)
                s16 = R.astype(s, "float16")
                c = R.matmul(s16, w16, out_dtype="float32")
                d = R.add(b, c)
                R.output(d)
            return d

    assert_structural_equal(ToMixedPrecision()(Before), Expected)


def test_parts_of_a_tuple():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((6, 3), "float32")):
            with R.dataflow():
                a = R.concat((x, x), axis=1)
                c = R.matmul(a, w)
                R.output(c)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((6, 3), "float32")):
            with R.dataflow():
                x16 = R.astype(x, "float16")
                a = R.concat((x16, x16), axis=1)
                w16 = R.astype(w, "float16")
                c = R.matmul(a, w16, out_dtype="float32")
                R.output(c)
            return c

    assert_structural_equal(ToMixedPrecision()(Before), Expected)


def test_narrow_parameters():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.add(a, x)
                R.output(b)
            return b

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float16"), w: R.Tensor((3, 3), "float16")):
            with R.dataflow():
                a = R.matmul(x, w, out_dtype="float32")
                x32 = R.astype(x, "float32")
                b = R.add(a, x32)
                R.output(b)
            return b

    after = ToMixedPrecision(fp16_input_names=["x", "w"])(Before)
    assert_structural_equal(after, Expected)


def test_a_constant_beyond_the_range_keeps_its_product():
    large = np.array([[1e5], [1.0]], "float32")

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 2), "float32")):
            with R.dataflow():
                a = R.matmul(x, R.const(large))
                R.output(a)
            return a

    assert ToMixedPrecision()(Before) is Before
    assert ToMixedPrecision(dtype="bfloat16")(Before) is not Before


def test_what_stays_as_it_is():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 2), "float64"), n: R.Tensor((2, 2), "int32")):
            a = R.matmul(x, x)
            with R.dataflow():
                b = R.matmul(a, x)
                c = R.matmul(n, n)
                R.output(b, c)
            return (a, b, c)

    assert ToMixedPrecision()(Before) is Before


@pytest.mark.parametrize("options", [{"out_dtype": "bfloat16"}, {"dtype": "int8"}])
def test_wrong_types(options):
    with pytest.raises(IRValueError, match="expected"):
        ToMixedPrecision(**options)


CHOICES = ("matmul", "add", "relu", "softmax", "transpose", "multiply", "exp", "concat")


def random_graph(seed, rows):
    """Products and what is between them, on tensors of (rows, rows)."""
    rng = np.random.default_rng(seed)
    given = [relax.Var(name, relax.TensorStructInfo((rows, rows), "float32")) for name in "xw"]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            values = list(given)
            for _ in range(int(rng.integers(3, 12))):
                left, right = [values[int(place)] for place in rng.integers(0, len(values), 2)]
                call = {
                    "matmul": lambda a, b: relax.op.matmul(a, b),
                    "add": relax.op.add,
                    "relu": lambda a, _: relax.op.nn.relu(a),
                    "softmax": lambda a, _: relax.op.nn.softmax(a),
                    "transpose": lambda a, _: relax.op.permute_dims(a),
                    "multiply": lambda a, _: relax.op.multiply(a, relax.const(0.5, "float32")),
                    "exp": lambda a, _: relax.op.tanh(relax.op.negative(a)),
                    "concat": lambda a, b: relax.op.maximum(a, b),
                }[CHOICES[int(rng.integers(len(CHOICES)))]](left, right)
                values.append(builder.emit(call))
            results = [builder.emit_output(values[-1]), builder.emit_output(values[-2])]
        builder.emit_func_output(relax.Tuple(results))
    return builder.get()


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_random_graphs(seed, dtype):
    rows = (0, 1, 3, 5)[seed % 4]
    before = random_graph(seed, rows)
    after = ToMixedPrecision(dtype=dtype)(before)
    assert well_formed(after)
    rng = np.random.default_rng(seed)
    x, w = (rng.uniform(-0.5, 0.5, (rows, rows)).astype("float32") for _ in "xw")
    for given, wanted in zip(run(after, "main", x, w), run(before, "main", x, w), strict=True):
        assert given.dtype == wanted.dtype == "float32"
        scale = max(np.abs(wanted).max(initial=0), 1)
        tolerance = (0.01 if dtype == "float16" else 0.08) * scale
        np.testing.assert_allclose(given, wanted, rtol=0, atol=tolerance)
