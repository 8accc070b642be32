"""``llvm -libs=blas``: products by numpy's BLAS, everything else by weft's kernels."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.relax.backend.dispatch import DispatchToLibraries
from weft.relax.transform import FoldConstant
from weft.support.errors import PassError, UnsupportedError

RNG = np.random.default_rng(3)
BLAS = weft.Target("llvm -libs=blas")


def array(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def module(left, right, make, dtype="float32"):
    """A module whose ``main`` is ``make`` of two tensors of these shapes."""
    builder = relax.BlockBuilder()
    a = relax.Var("a", relax.TensorStructInfo(left, dtype))
    b = relax.Var("b", relax.TensorStructInfo(right, dtype))
    with builder.function("main", [a, b]):
        with builder.dataflow():
            out = builder.emit_output(make(a, b))
        builder.emit_func_output(out)
    return builder.get()


def libraries_of(model):
    return [name for imported in model.kernels.imports for name in imported.functions]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 5), (5, 7)), ((2, 1, 4, 3), (6, 3, 1)), ((0, 4), (4, 2)), ((1, 0), (0, 3))],
)
def test_products_are_those_of_numpy(left, right, dtype):
    model = weft.compile(module(left, right, relax.op.matmul, dtype), target=BLAS)
    a, b = array(*left, dtype=dtype), array(*right, dtype=dtype)
    assert libraries_of(model) == ["fused_relax_matmul_blas"]
    np.testing.assert_allclose(model(a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_a_transposed_right_side_is_read_as_it_lies():
    graph = module(
        (2, 4, 8), (2, 5, 8),
        lambda a, b: relax.op.matmul(a, relax.op.permute_dims(b, [0, 2, 1])),
    )  # fmt: skip
    model = weft.compile(graph, target=BLAS)
    a, b = array(2, 4, 8), array(2, 5, 8)
    assert libraries_of(model) == ["fused_relax_permute_dims_relax_matmul_blas"]
    np.testing.assert_allclose(model(a, b), a @ b.transpose(0, 2, 1), rtol=1e-5, atol=1e-5)


def test_a_matrix_times_itself_and_what_follows():
    graph = module(
        (6, 6), (6, 6), lambda a, b: relax.op.nn.relu(relax.op.add(relax.op.matmul(a, a), b))
    )
    model = weft.compile(graph, target=BLAS)
    a, b = array(6, 6), array(6, 6)
    np.testing.assert_allclose(model(a, b), np.maximum(a @ a + b, 0), rtol=1e-5, atol=1e-5)


def test_one_model_for_all_sizes():
    n = tir.Var("n", "int64")
    model = weft.compile(module((n, 4), (4, 3), relax.op.matmul), target=BLAS)
    for size in (0, 1, 9):
        a, b = array(size, 4), array(4, 3)
        np.testing.assert_allclose(model(a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_a_weight_is_laid_out_once():
    weight = relax.const(array(3, 8))
    graph = module(
        (2, 8), (2, 3),
        lambda a, b: relax.op.add(relax.op.matmul(a, relax.op.permute_dims(weight)), b),
    )  # fmt: skip
    with BLAS:
        text = DispatchToLibraries()(FoldConstant()(graph)).script()
    assert text.count("R.call_dps_packed") == 1
    assert "permute_dims" not in text


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_what_blas_has_not_is_computed_here(dtype):
    values = RNG.integers(-3, 3, (2, 4, 4)).astype(dtype)
    model = weft.compile(module((4, 4), (4, 4), relax.op.matmul, dtype), target=BLAS)
    assert libraries_of(model) == []
    np.testing.assert_array_equal(model(*values), values[0] @ values[1])


def test_without_the_option_nothing_is_called():
    graph = module((3, 5), (5, 7), relax.op.matmul)
    assert libraries_of(weft.compile(graph)) == []
    assert DispatchToLibraries()(graph) is graph


def test_a_library_that_is_not_there():
    with pytest.raises(PassError, match=r"no library 'mkl' for CPUs; there are blas"):
        weft.compile(module((3, 5), (5, 7), relax.op.matmul), target="llvm -libs=mkl")


def test_such_a_model_is_not_saved(tmp_path):
    model = weft.compile(module((3, 5), (5, 7), relax.op.matmul), target=BLAS)
    with pytest.raises(UnsupportedError, match="calls functions of other libraries"):
        model.save(tmp_path / "model.weft")
