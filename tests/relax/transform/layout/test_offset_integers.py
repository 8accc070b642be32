"""OffsetIntegers: products of bytes less zero points as products of uint8 and int8."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.offset_integers import OffsetIntegers

RNG = np.random.default_rng(3)
EXTREMES = {"int8": (-128, 127), "uint8": (0, 255)}
VNNI = "llvm -mcpu=cascadelake"


def numbers(shape, dtype):
    low, high = EXTREMES[dtype]
    made = RNG.integers(low, high + 1, shape).astype(dtype)
    made.flat[: made.size // 3] = RNG.choice([low, high], made.size // 3)
    return made


def centred(builder, x, zero, wide="int16"):
    made = builder.emit(op.astype(x, wide))
    if zero is None:
        return made
    return builder.emit(op.subtract(made, builder.emit(op.astype(zero, wide))))


def module_of(x, zero, weights, weights_zero=None, wide="int16", **convolution):
    """A product of ``x - zero`` and constants; a zero point that is an array is an input."""
    given = [relax.Var("x", relax.TensorStructInfo(x.shape, str(x.dtype)))]
    if isinstance(zero, np.ndarray):
        given.append(relax.Var("z", relax.TensorStructInfo(zero.shape, str(zero.dtype))))
        zero = given[1]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            left = centred(builder, given[0], zero, wide)
            right = centred(builder, relax.const(weights), weights_zero)
            if wide != "int16":
                left = builder.emit(op.astype(left, "int16"))
            make = op.nn.conv2d if x.ndim == 4 else op.matmul
            made = builder.emit_output(make(left, right, out_dtype="int32", **convolution))
        builder.emit_func_output(made)
    return builder.get()


def operands(mod):
    """The types of the operands of the product."""
    calls = collect(mod["main"].body, Call)
    [product] = [call for call in calls if call.op.name in ("relax.matmul", "relax.nn.conv2d")]
    return [str(arg.struct_info.dtype) for arg in product.args]


def check(before, is_changed, *arrays):
    with weft.target.Target(VNNI):
        after = OffsetIntegers()(before)
    assert well_formed(after)
    assert operands(after) == (["uint8", "int8"] if is_changed else ["int16", "int16"])
    np.testing.assert_array_equal(run(after, "main", *arrays), run(before, "main", *arrays))


@pytest.mark.parametrize("wide", ["int16", "int32"])
@pytest.mark.parametrize("zero", [None, 0, 100])
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products(dtype, zero, wide):
    x, weights = numbers((3, 9), dtype), numbers((9, 5), "int8")
    point = None if zero is None else relax.const(zero, dtype)
    check(module_of(x, point, weights, wide=wide), True, x)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [(), (3, 1), (2, 1, 1)])
def test_zero_points_of_rows_that_are_inputs(shape, dtype):
    x, zero, weights = numbers((2, 3, 9), dtype), numbers(shape, dtype), numbers((9, 5), "int8")
    check(module_of(x, zero, weights), True, x, zero)


def test_the_zero_point_of_weights_is_taken_off():
    x, weights = numbers((3, 9), "uint8"), numbers((9, 5), "uint8")
    check(module_of(x, None, weights, relax.const(128, "uint8")), True, x)
    check(module_of(x, None, weights, relax.const(127, "uint8")), False, x)
    check(module_of(x, None, weights), False, x)


def test_a_zero_point_for_each_column_of_the_data_stays():
    x, zero, weights = numbers((3, 9), "uint8"), numbers((1, 9), "uint8"), numbers((9, 5), "int8")
    check(module_of(x, zero, weights), False, x, zero)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("zero", [None, 0, 77])
@pytest.mark.parametrize("padding", [0, (0, 1, 2, 1)])
def test_images_are_padded_with_their_zero_point(dtype, zero, padding):
    x, weights = numbers((2, 3, 5, 6), dtype), numbers((4, 3, 3, 2), "int8")
    point = None if zero is None else relax.const(zero, dtype)
    mod = module_of(x, point, weights, padding=padding, strides=(2, 1))
    check(mod, True, x)


@pytest.mark.parametrize(("options", "is_changed"), [
    ({}, True), ({"padding": 1}, False), ({"groups": 3}, False),
])  # fmt: skip
def test_a_zero_point_of_an_image_that_is_an_input(options, is_changed):
    x, zero = numbers((1, 3, 5, 6), "uint8"), numbers((), "uint8")
    weights = numbers((6, 3 // options.get("groups", 1), 3, 2), "int8")
    check(module_of(x, zero, weights, **options), is_changed, x, zero)


def test_processors_without_products_of_bytes_keep_the_graph():
    x, weights = numbers((3, 9), "uint8"), numbers((9, 5), "int8")
    before = module_of(x, None, weights)
    with weft.target.Target("llvm -mcpu=haswell"):
        assert OffsetIntegers()(before)["main"] is before["main"]


@pytest.mark.parametrize(("dtype", "zero"), [("int8", 200), ("uint8", -5), ("int8", -128)])
def test_padding_that_no_byte_stands_for_is_left(dtype, zero):
    x, weights = numbers((1, 2, 4, 5), dtype), numbers((3, 2, 3, 3), "int8")
    point = relax.const(np.int16(zero))
    is_changed = dtype == "int8" and zero == -128
    check(module_of(x, point, weights, padding=(1, 1)), is_changed, x)


@pytest.mark.parametrize(("dtype", "extreme"), [("uint8", 255), ("int8", -128), ("int8", 127)])
@pytest.mark.parametrize("weight", [-128, 127])
def test_native_sums_of_extremes_are_those_of_int64(dtype, extreme, weight):
    """Native code sums modulo 2**32 and saturates nowhere: 66,000 products of the largest bytes."""
    x = np.full((1, 66_000), extreme, dtype)
    weights = np.full((66_000, 3), weight, "int8")
    mod = module_of(x, relax.const(100, dtype), weights)
    exact = (x.astype("int64") - 100) @ weights.astype("int64")
    got = np.asarray(weft.compile(mod, cache=False)(x))
    np.testing.assert_array_equal(got, exact.astype("int32"))
