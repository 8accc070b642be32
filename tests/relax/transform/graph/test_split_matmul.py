"""SplitMatmul: a product that is only cut apart is computed in parts."""

import numpy as np
import pytest

from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.graph.split_matmul import SplitMatmul

WIDTH = 64


def constant(*shape):
    return relax.const(np.random.default_rng(len(shape)).standard_normal(shape).astype("float32"))


def module_of(body, dims=(5, 8)):
    """``body(builder, x)`` in a dataflow block; its results are added up."""
    x = relax.Var("x", relax.TensorStructInfo(dims, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = [builder.emit(part) for part in body(builder, x)]
            made = parts[0]
            for part in parts[1:]:
                made = builder.emit(op.add(made, part))
            made = builder.emit_output(op.nn.relu(made))
        builder.emit_func_output(made)
    return builder.get()


def count(mod, name):
    return sum(call.op.name == f"relax.{name}" for call in collect(mod["main"].body, Call))


def split_in_parts(before, dims=(5, 8)):
    """The module after the pass, which computes the same."""
    after = SplitMatmul()(before)
    assert well_formed(after)
    x = np.random.default_rng(0).standard_normal(dims).astype("float32")
    np.testing.assert_allclose(run(after, "main", x), run(before, "main", x), rtol=1e-5, atol=1e-5)
    return after


@pytest.mark.parametrize("is_bias_first", [False, True])
@pytest.mark.parametrize("cuts", [3, [WIDTH, 2 * WIDTH], [WIDTH, -WIDTH]])
def test_a_split_of_a_product_with_bias(is_bias_first, cuts):
    def body(builder, x):
        product, bias = builder.emit(op.matmul(x, constant(8, 3 * WIDTH))), constant(3 * WIDTH)
        whole = builder.emit(op.add(bias, product) if is_bias_first else op.add(product, bias))
        parts = builder.emit(op.split(whole, cuts, -1))
        return [parts[index] for index in range(3)]

    after = split_in_parts(module_of(body))
    assert count(after, "split") == 0
    assert count(after, "matmul") == 3


def test_slices_of_a_product_of_three_axes():
    def body(builder, x):
        whole = builder.emit(op.matmul(x, constant(8, 3 * WIDTH)))
        return [op.strided_slice(whole, [2], [begin], [begin + WIDTH]) for begin in (0, 2 * WIDTH)]

    after = split_in_parts(module_of(body, (2, 5, 8)), (2, 5, 8))
    assert count(after, "strided_slice") == 0
    assert count(after, "matmul") == 2


def test_a_product_that_something_else_needs_stays():
    def body(builder, x):
        whole = builder.emit(op.matmul(x, constant(8, 2 * WIDTH)))
        parts = builder.emit(op.split(whole, 2, -1))
        return [parts[0], parts[1], op.sum(whole, [1], keepdims=True)]

    before = module_of(body)
    assert SplitMatmul()(before) is before


@pytest.mark.parametrize(
    ("axis", "cuts"),
    [(0, 2), (1, [WIDTH // 2]), (1, [2 * WIDTH]), (1, [WIDTH, 0])],
    ids=["rows", "few columns", "none left", "out of order"],
)
def test_other_cuts_stay(axis, cuts):
    def body(builder, x):
        whole = builder.emit(op.matmul(x, constant(8, 2 * WIDTH)))
        return [op.sum(builder.emit(op.split(whole, cuts, axis))[1])]

    before = module_of(body, (4, 8))
    assert SplitMatmul()(before) is before


def test_overlapping_slices_stay():
    def body(builder, x):
        whole = builder.emit(op.matmul(x, constant(8, 3 * WIDTH)))
        return [op.strided_slice(whole, [1], [at], [at + WIDTH + 1]) for at in (0, WIDTH)]

    before = module_of(body)
    assert SplitMatmul()(before) is before


def test_weights_that_are_no_constants_stay():
    def body(builder, x):
        whole = builder.emit(op.matmul(x, x))
        parts = builder.emit(op.split(whole, 2, -1))
        return [parts[0], parts[1]]

    before = module_of(body, (2 * WIDTH, 2 * WIDTH))
    assert SplitMatmul()(before) is before
