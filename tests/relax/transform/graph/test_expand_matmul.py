"""ExpandMatmulOfSum and ReorderTakeAfterMatmul: products with sums, and with parts of tables."""

import numpy as np
import pytest

from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform import ExpandMatmulOfSum, ReorderTakeAfterMatmul
from weft.tir import Var

N = Var("n", "int64")


def module_of(body, shapes, **attrs):
    """``body(*parameters)`` in a dataflow block; a shape may come with a dtype."""
    infos = [s if isinstance(s[0], tuple) else (s, "float32") for s in shapes]
    params = [relax.Var(f"p{i}", relax.TensorStructInfo(*info)) for i, info in enumerate(infos)]
    builder = relax.BlockBuilder()
    with builder.function("main", params, attrs=attrs or None):
        with builder.dataflow():
            result = builder.emit_output(builder.normalize(body(*params)))
        builder.emit_func_output(result)
    return relax.transform.Normalize()(builder.get())


def names(mod):
    return [call.op.name.removeprefix("relax.") for call in collect(mod["main"].body, Call)]


def assert_equal_results(before, after, *arrays):
    assert relax.analysis.well_formed(after)
    results = [run(mod, "main", *arrays) for mod in (before, after)]
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def adapted(x, w, a, b):
    return op.matmul(x, op.add(w, op.matmul(a, b)))


def test_a_product_with_a_sum():
    before = module_of(adapted, [(N, 8), (8, 6), (8, 2), (2, 6)])
    after = ExpandMatmulOfSum()(before)
    assert sorted(names(after)) == ["add", "matmul", "matmul", "matmul"]
    assert_equal_results(before, after, random(3, 8), random(8, 6), random(8, 2), random(2, 6))
    assert ExpandMatmulOfSum()(after) is after


@pytest.mark.parametrize("axes", [None, [1, 0]])
def test_a_product_with_a_transposed_sum(axes):
    before = module_of(
        lambda x, a, b: op.matmul(x, op.permute_dims(op.add(a, b), axes)), [(3, 8), (6, 8), (6, 8)]
    )
    after = ExpandMatmulOfSum()(before)
    assert sorted(names(after)) == ["add", "matmul", "matmul", "permute_dims", "permute_dims"]
    assert_equal_results(before, after, random(3, 8), random(6, 8), random(6, 8))


def test_sums_that_stay():
    known = module_of(
        lambda x, a, b: op.matmul(x, op.add(a, b)), [(8,)] + [(8, 6)] * 2, num_input=1
    )
    assert ExpandMatmulOfSum()(known) is known
    broadcast = module_of(lambda x, a, b: op.matmul(x, op.add(a, b)), [(3, 8), (8, 6), (6,)])
    assert ExpandMatmulOfSum()(broadcast) is broadcast


INT = "int64"


def test_columns_of_a_table():
    before = module_of(
        lambda x, w, i: op.matmul(x, op.take(w, i, axis=-1)), [(2, 3, 8), (8, 9), ((N,), INT)]
    )
    after = ReorderTakeAfterMatmul()(before)
    last = after["main"].body.blocks[0].bindings[-1].value
    assert (last.op.name, last.attrs["axis"]) == ("relax.take", 2)
    assert_equal_results(before, after, random(2, 3, 8), random(8, 9), np.array([8, 0, 3, 3]))


def test_a_matrix_for_each_row_of_the_batch():
    before = module_of(
        lambda x, w, i: op.matmul(x, op.take(w, i, axis=0)), [(4, N, 8), (5, 8, 6), ((4,), INT)]
    )
    after = ReorderTakeAfterMatmul()(before)
    assert names(after)[-1] == "einsum"
    assert_equal_results(before, after, random(4, 2, 8), random(5, 8, 6), np.array([4, 0, 4, 2]))


@pytest.mark.parametrize(
    ("shapes", "axis"),
    [
        ([(3, 8), (9,), ((8,), INT)], 0),  # a vector: its elements are summed
        ([(3, 8), (9, 6), ((8,), INT)], 0),  # rows: they are summed, too
        ([(1, 3, 8), (5, 8, 6), ((4,), INT)], 0),  # one row of a batch for four matrices
        ([(8, 3, 2), (8, 9), ((2, 2), INT)], 1),  # the result has more axes
    ],
)
def test_takes_that_stay(shapes, axis):
    before = module_of(lambda x, w, i: op.matmul(x, op.take(w, i, axis=axis)), shapes)
    assert ReorderTakeAfterMatmul()(before) is before
