"""NarrowWeights: before and after; what stays float32."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from weft import relax
from weft.ir import assert_structural_equal
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.reference import run
from weft.relax.transform.weights.narrow_weights import NarrowWeights
from weft.support.errors import IRValueError

RNG = np.random.default_rng(0)
NARROW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def module(shapes, body):
    """A module of one function over tensors of these shapes (and dtypes)."""
    given = [
        relax.Var(f"x{place}", relax.TensorStructInfo(shape, dtype))
        for place, (shape, dtype) in enumerate(shapes)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            result = builder.emit_output(body(builder, *given))
        builder.emit_func_output(result)
    return builder.get()


def narrowed(mod, dtype="bfloat16"):
    with PassContext(config={"relax.narrow_weights": dtype}):
        return NarrowWeights()(mod)


def weight(*shape):
    return RNG.standard_normal(shape).astype("float32")


X, W = ((3, 4), "float32"), weight(4, 5)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_weight_of_a_product(dtype):
    before = module([X], lambda b, x: b.emit(relax.op.matmul(x, relax.const(W))))
    expected = module(
        [X],
        lambda b, x: b.emit(
            relax.op.matmul(x, relax.const(W.astype(NARROW[dtype])), out_dtype="float32")
        ),
    )
    after = narrowed(before, dtype)
    assert_structural_equal(after, expected)
    x = RNG.standard_normal((3, 4)).astype("float32")
    wanted = x @ W.astype(NARROW[dtype]).astype("float32")
    np.testing.assert_allclose(run(after, "main", x), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("groups", [1, 2])
def test_the_weight_of_a_convolution_keeps_its_attributes(groups):
    kernel, image = weight(4, 4 // groups, 3, 3), ((1, 4, 6, 6), "float32")

    def convolved(value, out_dtype=None):
        return lambda b, x: b.emit(
            relax.op.nn.conv2d(
                x, relax.const(value), strides=2, padding=1, groups=groups, out_dtype=out_dtype
            )
        )

    after = narrowed(module([image], convolved(kernel)))
    expected = module([image], convolved(kernel.astype(ml_dtypes.bfloat16), "float32"))
    assert_structural_equal(after, expected)


def test_a_weight_on_the_left():
    left = weight(2, 3)
    after = narrowed(module([X], lambda b, x: b.emit(relax.op.matmul(relax.const(left), x))))
    expected = module(
        [X],
        lambda b, x: b.emit(
            relax.op.matmul(relax.const(left.astype(ml_dtypes.bfloat16)), x, out_dtype="float32")
        ),
    )
    assert_structural_equal(after, expected)


def test_a_weight_of_two_products_stays_one_constant():
    shared = relax.const(W)

    def body(b, x):
        twice = [b.emit(relax.op.matmul(x, shared)) for _ in range(2)]
        return b.emit(relax.op.add(*twice))

    after = narrowed(module([X], body))
    products = [item.value for item in after["main"].body.blocks[0].bindings][:2]
    assert products[0].args[1] is products[1].args[1]
    assert products[0].args[1].data.dtype == "bfloat16"


LARGE = np.array([[1.0, 7e4], [-1e5, 0.5]], "float32")


def test_a_weight_beyond_the_range_stays():
    before = module(
        [((3, 2), "float32")], lambda b, x: b.emit(relax.op.matmul(x, relax.const(LARGE)))
    )
    assert narrowed(before, "float16") is before
    assert narrowed(before, "bfloat16") is not before


def test_what_is_infinite_already_may_be_narrowed():
    infinite = np.array([[np.inf, 1], [0, np.nan]], "float32")
    before = module(
        [((3, 2), "float32")], lambda b, x: b.emit(relax.op.matmul(x, relax.const(infinite)))
    )
    assert narrowed(before, "float16") is not before


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ([X, ((4, 5), "float32")], lambda b, x, w: b.emit(relax.op.matmul(x, w))),
        (
            [((3, 4), "float64")],
            lambda b, x: b.emit(relax.op.matmul(x, relax.const(W.astype("float64")))),
        ),
        ([X], lambda b, x: b.emit(relax.op.add(x, relax.const(weight(3, 4))))),
        ([X], lambda b, x: b.emit(relax.op.nn.softmax(x))),
        ([((7,), "int64")], lambda b, i: b.emit(relax.op.take(relax.const(weight(9, 4)), i, 0))),
    ],
    ids=["no constant", "float64", "sum", "softmax", "small table"],
)
def test_what_stays(given, body):
    before = module(given, body)
    assert narrowed(before) is before


def test_rows_of_a_large_table():
    table, rows = weight(1 << 16, 16), ((2, 3), "int64")
    after = narrowed(module([rows], lambda b, i: b.emit(relax.op.take(relax.const(table), i, 0))))

    def taken(b, i):
        narrow = relax.const(table.astype(ml_dtypes.bfloat16))
        return b.emit(relax.op.astype(b.emit(relax.op.take(narrow, i, 0)), "float32"))

    assert_structural_equal(after, module([rows], taken))


def test_without_the_option_nothing_happens():
    before = module([X], lambda b, x: b.emit(relax.op.matmul(x, relax.const(W))))
    assert NarrowWeights()(before) is before
    empty = IRModule({})
    assert narrowed(empty) is empty


def test_an_unknown_type_is_refused():
    before = module([X], lambda b, x: b.emit(relax.op.matmul(x, relax.const(W))))
    with pytest.raises(IRValueError, match="expected 'bfloat16' or 'float16', got 'int8'"):
        narrowed(before, "int8")


@pytest.mark.parametrize("shape", [(0, 4), (1, 4)])
def test_no_rows_and_one(shape):
    before = module([(shape, "float32")], lambda b, x: b.emit(relax.op.matmul(x, relax.const(W))))
    assert run(narrowed(before), "main", np.ones(shape, "float32")).shape == (shape[0], 5)
