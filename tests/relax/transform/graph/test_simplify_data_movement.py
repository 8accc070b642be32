"""SimplifyDataMovement: transposes, reshapes and slices meet, cancel, or cost nothing."""

import numpy as np
import pytest

from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.graph.simplify_data_movement import SimplifyDataMovement
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def module_of(shapes, body):
    """A module whose ``main`` computes ``body`` of inputs of those shapes in a dataflow block."""
    inputs = [
        relax.Var(f"x{index}", relax.TensorStructInfo(shape, "float32"))
        for index, shape in enumerate(shapes)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            made = builder.emit_output(builder.normalize(body(*inputs)))
        builder.emit_func_output(made)
    return builder.get()


def names(mod):
    """The operators of ``main``, in no order."""
    calls = collect(mod["main"].body, Call)
    return sorted(call.op.name.removeprefix("relax.") for call in calls)


def random(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def simplified(shapes, body, tolerance=1e-6):
    """The operators that are left; the values are those from before."""
    before = module_of(shapes, body)
    after = SimplifyDataMovement()(before)
    arrays = [random(shape, seed) for seed, shape in enumerate(shapes)]
    assert_same(before, after, arrays, tolerance)
    return names(after)


def assert_same(before, after, arrays, tolerance):
    want, got = run(before, "main", *arrays), run(after, "main", *arrays)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_linear_layer_of_a_view_needs_no_view(check):
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((1, 64, 8), "float32"),
            w: R.Tensor((8, 6), "float32"),
            b: R.Tensor((6,), "float32"),
        ):
            with R.dataflow():
                flat = R.reshape(x, (64, 8))
                product = R.matmul(flat, w)
                biased = R.add(b, product)
                back = R.reshape(biased, (1, 64, 6))
                out = R.nn.gelu(back)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((1, 64, 8), "float32"),
            w: R.Tensor((8, 6), "float32"),
            b: R.Tensor((6,), "float32"),
        ):
            with R.dataflow():
                product = R.matmul(x, w)
                biased = R.add(b, product)
                out = R.nn.gelu(biased)
                R.output(out)
            return out

    arrays = random((1, 64, 8)), random((8, 6), 1), random((6,), 2)
    made = check(SimplifyDataMovement(), Before, Expected, *arrays)
    check(SimplifyDataMovement(), made, made)


def test_symbolic_extents(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, "n", 8), "float32"), w: R.Tensor((8, 6), "float32")):
            n = T.int64()
            with R.dataflow():
                flat = R.reshape(x, (n, 8))
                product = R.matmul(flat, w)
                back = R.reshape(product, (1, n, 2, 3))
                there = R.permute_dims(back, (0, 2, 1, 3))
                again = R.permute_dims(there, (0, 2, 1, 3))
                out = R.nn.relu(again)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((1, "n", 8), "float32"), w: R.Tensor((8, 6), "float32")):
            n = T.int64()
            with R.dataflow():
                product = R.matmul(x, w)
                relu = R.nn.relu(product)
                out = R.reshape(relu, (1, n, 2, 3))
                R.output(out)
            return out

    check(SimplifyDataMovement(), Before, Expected, random((1, 5, 8)), random((8, 6), 1))


@pytest.mark.parametrize("shape", [(1, 5, 4, 6), (1, 1, 4, 6), (1, 5, 1, 6), (2, 0, 4, 6)])
def test_a_transpose_and_its_inverse(shape):
    def body(x):
        return op.permute_dims(op.permute_dims(x, [0, 2, 1, 3]), [0, 2, 1, 3])

    assert simplified([shape], body) == []


def test_transposes_with_a_reshape_between_that_adds_axes_of_one():
    def body(x):  # (length, heads, features), as torchvision's attention has it
        heads = op.reshape(op.permute_dims(x, [1, 0, 2]), [1, 4, 7, 6])
        return op.permute_dims(heads, [0, 2, 1, 3])

    assert simplified([(7, 4, 6)], body) == ["reshape"]


def test_a_transpose_below_what_is_done_by_element():
    def body(x, w, angles):
        heads = op.permute_dims(op.reshape(op.matmul(x, w), [1, 8, 2, 6]), [0, 2, 1, 3])
        first = op.strided_slice(heads, [3], [0], [3])
        second = op.strided_slice(heads, [3], [3], [6])
        turned = op.concat([op.negative(second), first], 3)
        made = op.add(op.multiply(heads, angles), op.multiply(turned, angles))
        return op.permute_dims(made, [0, 2, 1, 3])

    found = simplified([(1, 8, 5), (5, 12), (1, 1, 8, 6)], body)
    assert "permute_dims" not in found


def test_a_mask_over_a_transposed_attention():
    def body(q, mask):
        made = op.permute_dims(op.nn.attention(q, q, q), [0, 2, 1, 3])
        zero = relax.const(0.0, "float32")
        seen = op.where(op.greater(mask, zero), made, zero)
        return op.permute_dims(seen, [0, 2, 1, 3])

    found = simplified([(2, 6, 3, 4), (2, 1, 6, 1)], body, 1e-5)
    assert found == ["greater", "nn.attention", "reshape", "where"]


def test_elements_that_a_reduction_wants_stay_with_it():
    def body(x):
        return op.sum(op.exp(op.reshape(x, [3, 8])), [1])

    before = module_of([(24,)], body)
    assert SimplifyDataMovement()(before) is before


def test_packed_queries_keys_and_values_are_slices():
    def body(x, w):
        packed = op.reshape(op.matmul(x, w), [5, 1, 3, 8])
        apart = op.squeeze(op.permute_dims(op.expand_dims(packed, 0), [3, 1, 2, 0, 4]), [3])
        parts = [op.take(apart, relax.const(index, "int64"), 0) for index in range(3)]
        return op.add(op.multiply(parts[0], parts[1]), parts[2])

    found = simplified([(5, 1, 4), (4, 24)], body)
    assert "permute_dims" not in found
    assert "take" not in found
    assert found.count("strided_slice") == 3


def test_rows_that_are_few_become_one_axis():
    assert simplified([(20, 1, 8), (8, 4)], op.matmul) == ["matmul", "reshape", "reshape"]
    assert simplified([(2, 20, 8), (8, 4)], op.matmul) == ["matmul"]
    assert simplified([(0, 1, 8), (8, 4)], op.matmul) == ["matmul"]


def test_a_kernel_keeps_what_follows_it():
    def body(x, w, v):
        left = op.reshape(op.matmul(x, w), [4, 6])
        return op.add(left, op.matmul(left, v))

    assert simplified([(2, 2, 5), (5, 6), (6, 6)], body).count("add") == 1


def test_shared_heads_are_read_once():
    def repeated(x):
        heads = op.expand_dims(op.permute_dims(x, [0, 2, 1, 3]), 2)
        wide = op.reshape(op.broadcast_to(heads, [2, 3, 4, 5, 6]), [2, 12, 5, 6])
        return op.permute_dims(wide, [0, 2, 1, 3])

    def body(q, k, v):
        return op.nn.attention(q, repeated(k), repeated(v))

    shapes = [(2, 7, 12, 6), (2, 5, 3, 6), (2, 5, 3, 6)]
    assert simplified(shapes, body, 1e-5) == ["nn.attention"]


def test_a_bias_of_zeros_is_none():
    def body(q):
        zeros = relax.const(np.zeros((1, 1, 5, 5), "float32"))
        return op.nn.attention(q, q, q, zeros, 0.5)

    assert simplified([(1, 5, 2, 4)], body, 1e-5) == ["nn.attention"]


def test_a_mask_that_hides_nothing_is_none():
    def body(q):
        seen = relax.const(np.ones((1, 5, 1, 1), "bool"))
        return op.where(seen, op.nn.attention(q, q, q), relax.const(0.0, "float32"))

    assert simplified([(1, 5, 2, 4)], body, 1e-5) == ["nn.attention"]


def test_where_keeps_its_shape():
    def body(x):
        return op.where(relax.const(np.ones((3, 1), "bool")), x, relax.const(0.0, "float32"))

    assert simplified([(1, 4)], body) == ["where"]


@pytest.mark.parametrize("seed", range(16))
def test_random_chains_compute_the_same(seed):
    rng = np.random.default_rng(seed)

    def step(x):
        dims = [int(dim) for dim in x.struct_info.shape.values]
        kind = rng.integers(7)
        if kind == 0:
            return op.permute_dims(x, [int(axis) for axis in rng.permutation(len(dims))])
        if kind == 1:
            count = int(np.prod(dims))
            first = int(rng.choice([part for part in range(1, count + 1) if count % part == 0]))
            units = [1] * int(rng.integers(2))
            return op.reshape(x, [first, *units, count // first])
        if kind == 2:
            axis = int(rng.integers(len(dims)))
            begin = int(rng.integers(dims[axis]))
            return op.strided_slice(x, [axis], [begin], [int(rng.integers(begin, dims[axis])) + 1])
        if kind == 3:
            axis = int(rng.integers(len(dims)))
            return op.take(x, relax.const(int(rng.integers(dims[axis])), "int64"), axis)
        if kind == 4:
            return op.add(op.nn.relu(x), relax.const(random(dims[-1:], seed)))
        if kind == 5:
            return op.concat([op.negative(x), x], int(rng.integers(len(dims))))
        return op.matmul(x, relax.const(random((dims[-1], 4), seed)))

    x = relax.Var("x", relax.TensorStructInfo((3, 1, 8), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((8, 12), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w]):
        with builder.dataflow():
            made = builder.emit(op.matmul(x, w))
            for _ in range(9):
                if len(made.struct_info.shape.values) > 1:
                    made = builder.emit(step(made))
            made = builder.emit_output(op.nn.relu(made))
        builder.emit_func_output(made)
    before = builder.get()
    after = SimplifyDataMovement()(before)
    assert well_formed(after)
    assert_same(before, after, [random((3, 1, 8)), random((8, 12), 1)], 1e-4)


def test_one_element():
    def body(x, w):
        made = op.reshape(op.matmul(x, w), [1, 1, 1])
        return op.nn.relu(op.add(made, relax.const(2.0, "float32")))

    assert simplified([(1, 3), (3, 1)], body) == ["add", "matmul", "nn.relu", "reshape"]
