"""DequantizeAfterProduct: products of dequantized bytes are summed in int32."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout import winograd_choice
from weft.relax.transform.layout.centred import centred_of
from weft.relax.transform.layout.dequantize_after_product import DequantizeAfterProduct

RNG = np.random.default_rng(5)


def numbers(shape, dtype):
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return RNG.integers(low, high, shape).astype(dtype)


def scales(*shape):
    return relax.const(RNG.uniform(0.01, 0.1, shape).astype("float32"))


def dequantized(builder, x, zero, scale):
    emit = builder.emit
    wide = emit(op.astype(x, "int32"))
    if zero is not None:
        wide = emit(op.subtract(wide, emit(op.astype(relax.const(zero, "int8"), "int32"))))
    return emit(op.multiply(emit(op.astype(wide, "float32")), scale))


def module_of(x, weights, left, right, axes=None, **options):
    given = relax.Var("x", relax.TensorStructInfo(x.shape, str(x.dtype)))
    builder = relax.BlockBuilder()
    with builder.function("main", [given]):
        with builder.dataflow():
            a = dequantized(builder, given, 3, left)
            b = dequantized(builder, relax.const(weights), None, right)
            if axes is not None:
                b = builder.emit(op.permute_dims(b, axes or None))
            make = op.nn.conv2d if x.ndim == 4 else op.matmul
            made = builder.emit_output(op.nn.relu(builder.emit(make(a, b, **options))))
        builder.emit_func_output(made)
    return builder.get()


def check(before, is_changed, x, cpu="haswell"):
    with weft.target.Target(f"llvm -mcpu={cpu}"):
        after = DequantizeAfterProduct()(before)
    assert well_formed(after)
    products = [call for call in collect(after["main"].body, Call)
                if call.op.name in ("relax.matmul", "relax.nn.conv2d")]  # fmt: skip
    types = {str(arg.struct_info.dtype) for call in products for arg in call.args}
    assert types == ({"int16"} if is_changed else {"float32"})
    got, wanted = run(after, "main", x), run(before, "main", x)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=max(1e-4, 5e-6 * np.abs(wanted).max()))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("left", "right", "is_changed"),
    [((), (), True), ((4, 1), (5,), True), ((1, 4, 1), (1, 5), True), ((7,), (), False),
     ((), (7, 1), False)],
)  # fmt: skip
def test_products(left, right, is_changed, dtype):
    x = numbers((2, 4, 7), dtype)
    check(module_of(x, numbers((7, 5), "int8"), scales(*left), scales(*right)), is_changed, x)


@pytest.mark.parametrize("axes", [(), (1, 0)])
@pytest.mark.parametrize(("shape", "is_changed"), [((), True), ((5, 1), True), ((7,), False)])
def test_weights_that_are_transposed(shape, is_changed, axes):
    x = numbers((4, 7), "uint8")
    mod = module_of(x, numbers((5, 7), "int8"), scales(), scales(*shape), axes=axes)
    check(mod, is_changed, x)


@pytest.mark.parametrize(
    ("left", "right", "groups", "is_changed"),
    [((), (6, 1, 1, 1), 1, True), ((), (), 1, True), ((1, 3, 1, 1), (), 1, False),
     ((), (1, 3, 1, 1), 1, False), ((), (), 3, False)],
)  # fmt: skip
def test_convolutions(left, right, groups, is_changed):
    x, weights = numbers((2, 3, 5, 6), "uint8"), numbers((6, 3 // groups, 3, 2), "int8")
    options = {"padding": (1, 0, 2, 1), "strides": (2, 1), "groups": groups}
    check(module_of(x, weights, scales(*left), scales(*right), **options), is_changed, x)


@pytest.mark.parametrize(
    ("cpu", "size", "is_changed"),
    [("haswell", 28, False), ("haswell", 7, True), ("cascadelake", 28, True)],
)
def test_windows_with_fewer_products_in_floats(cpu, size, is_changed):
    """Winograd's algorithm reads weights that are larger: for few pixels that takes longer."""
    x, weights = numbers((1, 64, size, size), "uint8"), numbers((64, 64, 3, 3), "int8")
    check(module_of(x, weights, scales(), scales(), padding=1), is_changed, x, cpu)


def test_there_is_memory_for_some_windows_in_floats_only(monkeypatch):
    monkeypatch.setattr(winograd_choice, "_SHARE_OF_WEIGHTS", 0.0)
    x, weights = numbers((1, 64, 28, 28), "uint8"), numbers((64, 64, 3, 3), "int8")
    module = module_of(x, weights, scales(), scales(), padding=1)
    for limit, is_changed in ((0, True), (36 * 4 * 64 * 64, False)):
        monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", limit)
        check(module, is_changed, x, "haswell")


def test_processors_without_integer_products_keep_floats():
    x = numbers((4, 7), "uint8")
    before = module_of(x, numbers((7, 5), "int8"), scales(), scales())
    with weft.target.Target("llvm -mtriple=aarch64-linux-gnu -mcpu=generic"):
        assert DequantizeAfterProduct()(before)["main"] is before["main"]


@pytest.mark.parametrize(("length", "is_changed"), [(14_600, True), (14_700, False)])
def test_sums_that_may_leave_int32_stay_in_float32(length, is_changed):
    """uint8 less a zero point of int8 reaches 383, not 255: 383 * 383 * 14,700 is beyond 2**31."""
    x, weights = np.full((1, length), 255, "uint8"), np.full((length, 2), 255, "uint8")
    given = relax.Var("x", relax.TensorStructInfo(x.shape, "uint8"))
    builder = relax.BlockBuilder()
    with builder.function("main", [given]):
        with builder.dataflow():
            one = relax.const(1.0, "float32")
            a = dequantized(builder, given, -128, one)
            b = dequantized(builder, relax.const(weights), -128, one)
            made = builder.emit_output(builder.emit(op.matmul(a, b)))
        builder.emit_func_output(made)
    before = builder.get()
    check(before, is_changed, x, cpu="cascadelake")
    exact = np.full((1, 2), (255 + 128) ** 2 * length, "int64")
    got = np.asarray(weft.compile(before, cache=False)(x))
    np.testing.assert_allclose(got.astype("float64"), exact, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "zero", "reach"),
    [("uint8", None, 255), ("int8", None, 128), ("uint8", -128, 383), ("int8", 127, 255),
     ("int8", 0, 128), ("uint8", 255, 255)],
)  # fmt: skip
def test_reach_of_centred_bytes(dtype, zero, reach):
    given = relax.Var("x", relax.TensorStructInfo((4,), dtype))
    wide = op.astype(given, "int32")
    builder = relax.BlockBuilder()
    with builder.function("main", [given]):
        value = builder.emit(wide)
        if zero is not None:
            value = builder.emit(op.subtract(value, relax.const(zero, "int32")))
        centred = centred_of(value, builder.lookup_binding)
        builder.emit_func_output(value)
    assert centred.reach == reach


def test_second_names_of_values_hide_nothing():
    """``y = x`` between a cast, a difference, a scale and a product, on both sides."""
    x, weights = numbers((4, 7), "uint8"), numbers((7, 5), "int8")
    given = relax.Var("x", relax.TensorStructInfo(x.shape, "uint8"))
    builder = relax.BlockBuilder()

    def twice(value):
        return builder.emit(builder.emit(value))

    with builder.function("main", [given]):
        with builder.dataflow():
            parts = []
            for value, zero in ((given, 3), (relax.const(weights), 0)):
                wide = twice(op.subtract(twice(op.astype(value, "int32")), relax.const(zero)))
                real = twice(op.astype(wide, "float32"))
                parts.append(twice(op.multiply(real, relax.const(0.5, "float32"))))
            result = builder.emit_output(builder.emit(op.matmul(*parts)))
        builder.emit_func_output(result)
    check(builder.get(), True, x)
