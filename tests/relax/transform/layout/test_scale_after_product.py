"""ScaleAfterProduct: floats are multiplied by the bytes of weights, and the sums are scaled."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.expr import Call
from weft.relax.transform.layout.scale_after_product import ScaleAfterProduct
from weft.target.host import host_features
from weft.tir import Var

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(3)
DEPTH, COLUMNS = 520, 600
"""More than FoldConstant makes floats of."""
TARGETS = ["llvm", pytest.param("llvm -mcpu=haswell", marks=pytest.mark.skipif(
    not host_features().get("avx2", False), reason="cannot run code for AVX2"))]  # fmt: skip


def weights_of(dtype="int8", shape=(DEPTH, COLUMNS)):
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return RNG.integers(low, high, shape).astype(dtype)


def module_of(rows, weights, scale=None, zero=None, turned=False):
    """A product of floats with dequantized weights, which may be transposed after that."""
    depth = weights.shape[1 if turned else 0]
    x = relax.Var("x", relax.TensorStructInfo((rows, depth), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = relax.const(weights)
            if zero is not None:
                wide = builder.emit(op.astype(wide, "int32"))
                point = builder.emit(op.astype(relax.const(zero), "int32"))
                wide = builder.emit(op.subtract(wide, point))
            real = builder.emit(op.astype(wide, "float32"))
            if scale is not None:
                real = builder.emit(op.multiply(real, relax.const(scale)))
            if turned:
                real = builder.emit(op.permute_dims(real))
            out = builder.emit_output(op.nn.relu(builder.emit(op.matmul(x, real))))
        builder.emit_func_output(out)
    return builder.finalize()


def scales(*shape):
    return RNG.uniform(0.01, 0.03, shape).astype("float32")


def is_changed(mod):
    products = [
        call for call in collect(ScaleAfterProduct()(mod)["main"], Call)
        if call.op.name == "relax.matmul"
    ]  # fmt: skip
    [product] = products
    return str(product.args[1].struct_info.dtype) == "int8"


def expected(x, weights, scale=1.0, zero=0, turned=False):
    real = (weights.astype("float64") - zero) * scale
    return np.maximum(x.astype("float64") @ (real.T if turned else real), 0)


FORMS = [
    ("int8", scales(1, COLUMNS), None, False), ("int8", scales(COLUMNS), None, False),
    ("int8", scales(), None, False), ("int8", None, None, False),
    ("int8", scales(COLUMNS, 1), None, True), ("uint8", scales(1, COLUMNS), np.uint8(128), False),
    ("uint8", scales(COLUMNS, 1), np.full((COLUMNS, 1), 128, "uint8"), True),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize(("dtype", "scale", "zero", "turned"), FORMS)
def test_forms(dtype, scale, zero, turned, rows, target):
    weights = weights_of(dtype, (COLUMNS, DEPTH) if turned else (DEPTH, COLUMNS))
    mod = module_of(rows, weights, scale, zero, turned)
    assert is_changed(mod)
    x = RNG.standard_normal((rows, DEPTH)).astype("float32")
    wanted = expected(
        x, weights, 1.0 if scale is None else scale.astype("float64"),
        0 if zero is None else zero.astype("float64"), turned,
    )  # fmt: skip
    given = weft.compile(mod, target=target)(x)
    np.testing.assert_allclose(given, wanted, rtol=0, atol=2e-6 * wanted.max())


def test_any_number_of_rows():
    weights, scale = weights_of(), scales(1, COLUMNS)
    compiled = weft.compile(module_of(Var("n", "int64"), weights, scale))
    for rows in (0, 1, 2, 9, 33):
        x = RNG.standard_normal((rows, DEPTH)).astype("float32")
        wanted = expected(x, weights, scale)
        atol = 2e-6 * max(wanted.max(initial=0), 1)
        np.testing.assert_allclose(compiled(x), wanted, rtol=0, atol=atol)


def test_no_call_converts_a_matrix():
    """The only kernel is the product, and the model holds bytes."""
    compiled = weft.compile(module_of(4, weights_of(), scales(1, COLUMNS)), cache=False)
    assert compiled.constant_bytes() < 2 * DEPTH * COLUMNS
    assert sum("kernel" in line for line in compiled.as_text().splitlines()) <= 1


@pytest.mark.parametrize(
    ("dtype", "scale", "zero", "shape"),
    [
        ("int8", scales(DEPTH, 1), None, (DEPTH, COLUMNS)),  # scales differ along the sum
        ("uint8", scales(1, COLUMNS), None, (DEPTH, COLUMNS)),  # more than int8 holds
        ("int8", scales(1, COLUMNS), np.int8(-100), (DEPTH, COLUMNS)),
        ("int8", scales(1, 30), None, (20, 30)),  # so small that it is folded
    ],
)
def test_other_weights_stay(dtype, scale, zero, shape):
    assert not is_changed(module_of(5, weights_of(dtype, shape), scale, zero))


def blocked_module(rows, weights, factors, size, axis, zero=None, turned=False):
    """A product with weights whose blocks along an axis have scales, and maybe zero points."""
    depth = weights.shape[1 if turned else 0]
    x = relax.Var("x", relax.TensorStructInfo((rows, depth), "float32"))
    builder = relax.BlockBuilder()
    emit = builder.emit
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = emit(op.astype(relax.const(weights), "int32"))
            if zero is not None:
                point = emit(op.astype(relax.const(zero), "int32"))
                wide = emit(op.subtract(wide, emit(op.repeat(point, size, axis))))
            scale = emit(op.repeat(relax.const(factors), size, axis))
            real = emit(op.multiply(emit(op.astype(wide, "float32")), scale))
            if turned:
                real = emit(op.permute_dims(real))
            out = builder.emit_output(emit(op.matmul(x, real)))
        builder.emit_func_output(out)
    return builder.finalize()


def has_blocks(mod):
    calls = collect(ScaleAfterProduct()(mod)["main"], Call)
    return "relax.block_scaled_matmul" in [call.op.name for call in calls]


@pytest.mark.parametrize("rows", [1, 5, Var("n", "int64")])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_blocks_with_scales_of_their_own(kind, turned, rows):
    size, axis = 40, 1 if turned else 0
    shape = (COLUMNS, DEPTH) if turned else (DEPTH, COLUMNS)
    few = tuple([extent // size if at == axis else extent for at, extent in enumerate(shape)])
    weights = RNG.integers(0, 16, shape).astype(kind)
    zero = RNG.integers(0, 16, few).astype(kind) if kind == "uint8" else None
    factors = scales(*few)
    mod = blocked_module(rows, weights, factors, size, axis, zero, turned)
    assert has_blocks(mod)
    real = weights.astype("float64")
    if zero is not None:
        real -= np.repeat(zero.astype("float64"), size, axis)
    real *= np.repeat(factors.astype("float64"), size, axis)
    compiled = weft.compile(mod)
    for count in (0, 1, 7) if isinstance(rows, Var) else (rows,):
        x = RNG.standard_normal((count, DEPTH)).astype("float32")
        wanted = x.astype("float64") @ (real.T if turned else real)
        atol = 2e-6 * max(np.abs(wanted).max(initial=0), 1)
        np.testing.assert_allclose(compiled(x), wanted, rtol=0, atol=atol)


def test_blocks_of_columns_stay():
    mod = blocked_module(3, weights_of(), scales(DEPTH, COLUMNS // 40), 40, 1)
    assert not has_blocks(mod)
    assert ScaleAfterProduct()(mod)["main"] is mod["main"]
