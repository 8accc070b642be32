"""ScaleWeights: gates of channels scale the weights of the next convolution."""

import numpy as np
import pytest

from weft import relax, tir
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform.layout.scale_weights import ScaleWeights

IMAGE = (1, 6, 5, 7)


def module_of(body, image=IMAGE, gate=(1, 6, 1, 1)):
    """``body(builder, x, gate)`` in a dataflow block."""
    x, factor = [
        relax.Var(name, relax.TensorStructInfo(dims, "float32"))
        for name, dims in (("x", image), ("gate", gate))
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", [x, factor]):
        with builder.dataflow():
            made = builder.emit_output(body(builder, x, factor))
        builder.emit_func_output(made)
    return builder.get()


def weights(filters=3, channels=6, window=1):
    rng = np.random.default_rng(filters)
    return relax.const(rng.standard_normal((filters, channels, window, window)).astype("float32"))


def multiplied(mod):
    """The sizes of the results of all products."""
    calls = [call for call in collect(mod["main"].body, Call) if call.op.name == "relax.multiply"]
    return [tuple([int(dim) for dim in call.struct_info.shape.values]) for call in calls]


@pytest.mark.parametrize("is_gate_first", [False, True])
def test_the_weights_are_scaled(is_gate_first):
    def body(builder, x, gate):
        product = op.multiply(gate, x) if is_gate_first else op.multiply(x, gate)
        return op.nn.conv2d(builder.emit(product), weights(), strides=2)

    before = module_of(body)
    after = ScaleWeights()(before)
    assert well_formed(after)
    assert multiplied(after) == [(3, 6, 1, 1)]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(dims).astype("float32") for dims in (IMAGE, (1, 6, 1, 1))]
    np.testing.assert_allclose(
        run(after, "main", *arrays), run(before, "main", *arrays), rtol=1e-5, atol=1e-5
    )


def test_what_nobody_needs_is_no_use():
    def body(builder, x, gate):
        product = builder.emit(op.multiply(x, gate))
        builder.emit(op.nn.conv2d(product, weights()))
        return op.nn.conv2d(product, weights(4))

    assert multiplied(ScaleWeights()(module_of(body))) == [(4, 6, 1, 1)]


def product_then(**options):
    filters, window = options.pop("filters", 3), options.pop("window", 1)
    channels = options.pop("channels", 6)

    def body(builder, x, gate):
        product = builder.emit(op.multiply(x, gate))
        return op.nn.conv2d(product, weights(filters, channels, window), **options)

    return body


def used_twice(builder, x, gate):
    product = builder.emit(op.multiply(x, gate))
    points = builder.emit(op.nn.conv2d(product, weights(6)))
    return op.add(points, product)


@pytest.mark.parametrize(
    ("body", "image", "gate"),
    [
        (product_then(window=3, padding=1), IMAGE, (1, 6, 1, 1)),
        (product_then(filters=9), IMAGE, (1, 6, 1, 1)),
        (product_then(channels=3, filters=2, groups=2), IMAGE, (1, 6, 1, 1)),
        (product_then(), (2, 6, 5, 7), (1, 6, 1, 1)),
        (product_then(), (2, 6, 5, 7), (2, 6, 1, 1)),
        (product_then(), IMAGE, (1, 1, 5, 7)),
        (product_then(), IMAGE, IMAGE),
        (used_twice, IMAGE, (1, 6, 1, 1)),
    ],
    ids=[
        "windows", "few pixels", "groups", "two images", "two images, two gates",
        "numbers for pixels", "numbers for elements", "used twice",
    ],
)  # fmt: skip
def test_what_stays(body, image, gate):
    before = module_of(body, image, gate)
    assert ScaleWeights()(before) is before


def test_symbolic_images_stay():
    before = module_of(product_then(), (1, 6, tir.Var("h", "int64"), 7))
    assert ScaleWeights()(before) is before
