"""JoinPixels: images that convolutions take pixel by pixel are one row; the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.ir.functor import collect
from weft.relax.reference import run
from weft.relax.transform.layout.join_pixels import JoinPixels

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(5)


def module(shape, filters=6, window=1, follows=lambda x, _: x, **attrs):
    """A convolution of an image of this shape, and what follows it and takes the image too."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    weight = relax.const(RNG.normal(size=(filters, shape[1], window, window)).astype("float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(relax.op.nn.conv2d(x, weight, **attrs))
            out = builder.emit_output(follows(made, x))
        builder.emit_func_output(out)
    return builder.get()


def images(mod):
    """The height and width of what the convolutions take."""
    calls = [call for call in collect(mod["main"], relax.Call)
             if getattr(call.op, "name", "") == "relax.nn.conv2d"]  # fmt: skip
    return [[int(size) for size in call.args[0].struct_info.shape.values[2:]] for call in calls]


@pytest.mark.parametrize(
    ("size", "attrs", "expected"),
    [
        ((7, 5), {}, [1, 35]), ((1, 5), {}, [1, 5]), ((5, 1), {}, [1, 5]), ((1, 1), {}, [1, 1]),
        ((8, 6), {"strides": 2}, [8, 6]), ((8, 6), {"padding": 1}, [8, 6]),
        ((8, 6), {"window": 3}, [8, 6]), ((0, 3), {}, [0, 3]),
    ],
)  # fmt: skip
def test_an_image_taken_pixel_by_pixel_is_one_row(size, attrs, expected):
    mod = module((2, 3, *size), **attrs)
    made = JoinPixels()(mod)
    assert images(made) == [expected]
    x = RNG.normal(size=(2, 3, *size)).astype("float32")
    np.testing.assert_allclose(run(made, "main", x), run(mod, "main", x), rtol=1e-5, atol=1e-5)


def test_a_batch_of_any_size():
    batch = tir.Var("n", "int64")
    mod = module((batch, 4, 6, 5), filters=4)
    made = JoinPixels()(mod)
    assert images(made) == [[1, 30]]
    x = RNG.normal(size=(3, 4, 6, 5)).astype("float32")
    np.testing.assert_allclose(weft.compile(mod)(x), run(mod, "main", x), rtol=1e-5, atol=1e-5)


def of_channels(rank):
    return relax.const(RNG.normal(size=(1, 24, 1, 1)[4 - rank :]).astype("float32"))


ACTIVATIONS = {
    "relu": relax.op.nn.relu, "silu": relax.op.nn.silu, "hardswish": relax.op.nn.hardswish,
    "slope": lambda x: relax.op.where(
        relax.op.greater(x, relax.const(0, "float32")), x, relax.op.multiply(x, of_channels(4))
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_bias_and_what_follows_it_stay_in_the_kernel(name):
    def follows(made, _):
        biased = relax.op.add(relax.op.add(made, of_channels(4)), of_channels(3))
        return ACTIVATIONS[name](biased)

    check_one_kernel((9, 15), "llvm", follows)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("size", [(9, 17), (12, 12), (56, 7)])
def test_an_image_of_the_same_size_is_added_in_the_kernel(size, target):
    check_one_kernel(size, target, lambda made, x: relax.op.add(relax.op.nn.relu(made), x))


def check_one_kernel(size, target, follows):
    mod = module((1, 24, *size), filters=24, follows=follows)
    with weft.target.Target(target):
        made = relax.get_pipeline("weft")(mod)
    kernels = [gvar.name_hint for gvar, func in made.functions.items()
               if isinstance(func, tir.PrimFunc)]  # fmt: skip
    assert len(kernels) == 1
    x = RNG.normal(size=(1, 24, *size)).astype("float32")
    found = weft.compile(mod, target=target)(x)
    np.testing.assert_allclose(found, run(mod, "main", x), rtol=1e-4, atol=1e-4)
