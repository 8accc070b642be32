"""SliceSplits: a split becomes slices where these fuse with whatever reads its parts."""

import numpy as np
import pytest

from weft import relax, tir
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.graph.slice_splits import SliceSplits


def module_of(body, *dims):
    """``body(builder, x)`` in a dataflow block."""
    x = relax.Var("x", relax.TensorStructInfo(dims, "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            result = builder.emit_output(body(builder, x))
        builder.emit_func_output(result)
    return builder.get()


def gated(cuts, axis):
    def body(builder, x):
        parts = builder.emit(op.split(x, cuts, axis))
        first, second = builder.emit(parts[0]), builder.emit(parts[1])
        return op.multiply(first, builder.emit(op.sigmoid(second)))

    return body


def count(mod, name):
    return sum(call.op.name == f"relax.{name}" for call in collect(mod["main"].body, Call))


def assert_results_are_kept(before, after, *shape):
    assert well_formed(after)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    np.testing.assert_array_equal(run(after, "main", x), run(before, "main", x))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("cuts", [2, [3]])
def test_a_gated_unit_reads_slices(cuts, axis):
    before = module_of(gated(cuts, axis), 6, 6)
    after = SliceSplits()(before)
    assert (count(after, "split"), count(after, "strided_slice")) == (0, 2)
    assert_results_are_kept(before, after, 6, 6)


def test_other_axes_may_be_symbolic():
    batch = tir.Var("batch", "int64")
    before = module_of(gated(2, 1), batch, 6)
    after = SliceSplits()(before)
    assert count(after, "split") == 0
    assert_results_are_kept(before, after, 5, 6)


def test_a_symbolic_axis_stays_split():
    rows = tir.Var("rows", "int64")
    before = module_of(gated(2, 0), rows * 2, 6)
    assert SliceSplits()(before) is before or count(SliceSplits()(before), "split") == 1


def test_cuts_out_of_order_stay_split():
    """Such a split has elements twice: its third part begins at 1, not where the first one ends."""

    def body(builder, x):
        parts = builder.emit(op.split(x, [3, 1], 0))
        return relax.Tuple([builder.emit(op.exp(builder.emit(parts[i]))) for i in range(3)])

    before = module_of(body, 6, 2)
    after = SliceSplits()(before)
    assert count(after, "split") == 1
    x = np.random.default_rng(0).standard_normal((6, 2)).astype("float32")
    for part, same in zip(run(after, "main", x), run(before, "main", x), strict=True):
        np.testing.assert_array_equal(part, same)


def test_parts_that_are_moved_are_slices_too():
    def body(builder, x):
        parts = builder.emit(op.split(x, 3, 1))
        first, _, third = [builder.emit(parts[index]) for index in range(3)]
        return op.concat([third, first], 1)

    before = module_of(body, 4, 6)
    after = SliceSplits()(before)
    assert (count(after, "split"), count(after, "strided_slice")) == (0, 2)
    assert_results_are_kept(before, after, 4, 6)


def test_a_part_that_a_product_reads_keeps_the_split():
    def body(builder, x):
        parts = builder.emit(op.split(x, 2, 1))
        first, second = builder.emit(parts[0]), builder.emit(parts[1])
        product = builder.emit(op.matmul(first, relax.const(np.ones((3, 3), "float32"))))
        return op.add(product, second)

    assert count(SliceSplits()(module_of(body, 4, 6)), "split") == 1


def test_a_part_that_leaves_the_block_keeps_the_split():
    x = relax.Var("x", relax.TensorStructInfo((4, 6), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = builder.emit(op.split(x, 2, 1))
            first = builder.emit_output(parts[0])
            second = builder.emit_output(op.nn.relu(builder.emit(parts[1])))
        builder.emit_func_output((first, second))
    assert count(SliceSplits()(builder.get()), "split") == 1
