"""BlockChannels: which layouts convolutions get, and the same results."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax.reference import run
from weft.relax.transform import FoldConstant, LegalizeOps
from weft.relax.transform.layout.block_channels import BlockChannels

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(3)


def network(*layers, channels=3, size=9):
    """Convolutions one after the other, each a (filters, window, groups), with a bias and relu."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, channels, size, size), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            data = x
            for filters, window, groups in layers:
                shape = (filters, channels // groups, window, window)
                weight = relax.const(RNG.normal(size=shape).astype("float32"))
                bias = relax.const(RNG.normal(size=(1, filters, 1, 1)).astype("float32"))
                data = builder.emit(
                    relax.op.nn.conv2d(data, weight, padding=window // 2, groups=groups)
                )
                data = builder.emit(relax.op.nn.relu(relax.op.add(data, bias)))
                channels = filters
            out = builder.emit_output(relax.op.mean(data, [2, 3]))
        builder.emit_func_output(out)
    return builder.get()


def layouts(mod):
    names = ("data_layout", "kernel_layout", "out_layout")
    return [
        tuple([str(call.attrs[name]) for name in names])
        for call in collect(mod["main"], relax.Call)
        if getattr(call.op, "name", "") == "relax.nn.conv2d"
    ]


def conversions(mod):
    return sum(
        getattr(call.op, "name", "") == "relax.layout_transform"
        for call in collect(FoldConstant()(mod)["main"], relax.Call)
    )


NETWORKS = {
    "an image, points, depthwise": (
        [(16, 3, 1), (24, 1, 1), (24, 3, 24), (16, 1, 1)],
        [("NCHW", "OIHW16o", "NCHW16c"), ("NCHW16c", "OIHW16i24o", "NCHW24c"),
         ("NCHW24c", "OIHW24o", "NCHW24c"), ("NCHW24c", "OIHW24i16o", "NCHW16c")], 3,
    ),
    "groups that blocks do not cross": (
        [(32, 3, 1), (32, 3, 2)],
        [("NCHW", "OIHW16o", "NCHW16c"), ("NCHW16c", "OIHW16i16o", "NCHW16c")], 3,
    ),
    "groups of half a vector": (
        [(32, 3, 1), (32, 3, 4)],
        [("NCHW", "OIHW16o", "NCHW16c"), ("NCHW8c", "OIHW8i8o", "NCHW8c")], 3,
    ),
    "groups of a quarter of a vector": (
        [(32, 3, 1), (32, 3, 8)],
        [("NCHW", "OIHW16o", "NCHW16c"), ("NCHW", "OIHW", "NCHW")], 3,
    ),
    "groups of a block of their own": (
        [(120, 3, 1), (120, 3, 5)],
        [("NCHW", "OIHW40o", "NCHW40c"), ("NCHW24c", "OIHW24i24o", "NCHW24c")], 3,
    ),
    "odd channels": (
        [(7, 3, 1), (16, 3, 1)], [("NCHW", "OIHW", "NCHW"), ("NCHW", "OIHW", "NCHW")], 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_layouts_and_results(name):
    layers, expected, channels = NETWORKS[name]
    size = 9 if layers[0][0] < 32 else 3  # the interpreter takes its time
    mod = network(*layers, channels=channels, size=size)
    made = BlockChannels()(mod)
    assert layouts(made) == expected
    data = RNG.normal(size=(1, channels, size, size)).astype("float32")
    wanted = run(mod, "main", data)
    np.testing.assert_allclose(run(made, "main", data), wanted, rtol=1e-4, atol=1e-4)
    lowered = LegalizeOps()(FoldConstant()(made))
    np.testing.assert_allclose(run(lowered, "main", data), wanted, rtol=1e-4, atol=1e-4)


def test_a_network_is_converted_at_its_ends_only():
    made = BlockChannels()(network((16, 3, 1), (24, 1, 1), (24, 3, 24), (16, 1, 1)))
    assert conversions(made) <= 1  # the mean takes the tensor as the program names its axes


def chain(shape, *calls):
    """A function that applies calls one after the other."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            data = x
            for call in calls:
                data = builder.emit(call(data))
            out = builder.emit_output(data)
        builder.emit_func_output(out)
    return builder.get()


def convolved(shape, **options):
    weight = relax.const(RNG.normal(size=shape).astype("float32"))
    return lambda data: relax.op.nn.conv2d(data, weight, padding=shape[-1] // 2, **options)


@pytest.mark.parametrize(
    ("groups", "strides", "blocks"),
    [(4, 2, "8"), (8, 2, "4"), (8, (1, 2), "4"), (8, 1, None), (16, 2, None)],
)
def test_small_groups_have_blocks_where_strides_leave_gaps_between_pixels(groups, strides, blocks):
    """Vectors of pixels would gather their elements one by one."""
    mod = chain(
        (1, 3, 9, 9), convolved((32, 3, 3, 3)),
        convolved((32, 32 // groups, 3, 3), groups=groups, strides=strides),
    )  # fmt: skip
    after = BlockChannels()(mod)
    names = layouts(after)[1]
    assert names[0] == ("NCHW" if blocks is None else f"NCHW{blocks}c")
    x = RNG.normal(size=(1, 3, 9, 9)).astype("float32")
    expected = run(mod, "main", x)
    np.testing.assert_allclose(run(after, "main", x), expected, rtol=1e-4, atol=1e-4)
    native = weft.compile(mod, target="llvm", cache=False)(x)
    np.testing.assert_allclose(np.asarray(native), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("spatial", "letters"), [((11,), "W"), (("t",), "W"), ((5, 3, 4), "DHW")])
def test_sequences_and_volumes_have_blocks(spatial, letters):
    rank = len(spatial)
    operator = getattr(relax.op.nn, f"conv{rank}d")
    time = weft.tir.Var("t", "int64")
    weights = [relax.const(RNG.normal(size=shape).astype("float32")) for shape in
               ((16, 3, *[3] * rank), (24, 16, *[2] * rank))]  # fmt: skip
    mod = chain(
        (2, 3, *[time if extent == "t" else extent for extent in spatial]),
        lambda x: operator(x, weights[0], padding=1), relax.op.nn.relu,
        lambda x: operator(x, weights[1], strides=2),
    )  # fmt: skip
    blocked = BlockChannels()(mod)
    plain = f"NC{letters}"
    calls = [call for call in collect(blocked["main"], relax.Call)
             if getattr(call.op, "name", "") == f"relax.nn.conv{rank}d"]  # fmt: skip
    names = ("data_layout", "kernel_layout", "out_layout")
    assert [tuple([str(call.attrs[name]) for name in names]) for call in calls] == [
        (plain, f"OI{letters}16o", f"{plain}16c"),
        (f"{plain}16c", f"OI{letters}16i24o", f"{plain}24c"),
    ]
    compiled = weft.compile(mod)
    for extent in (2, 3, 12) if "t" in spatial else (1,):
        shape = [extent if size == "t" else size for size in spatial]
        data = RNG.normal(size=(2, 3, *shape)).astype("float32")
        expected = run(mod, "main", data)
        np.testing.assert_allclose(run(blocked, "main", data), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(compiled(data), expected, rtol=1e-4, atol=1e-4)


def channels_last(shape, **options):
    """A convolution of images whose channels are last, with a bias and relu."""
    weight = relax.const(RNG.normal(size=shape).astype("float32"))
    bias = relax.const(RNG.normal(size=(shape[-1],)).astype("float32"))
    layouts_of = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
    return lambda x: relax.op.nn.relu(
        relax.op.add(relax.op.nn.conv2d(x, weight, **layouts_of, **options), bias)
    )


def test_images_whose_channels_are_last_get_the_same_blocks():
    mod = chain(
        (2, 9, 11, 3), channels_last((3, 3, 3, 16), strides=2, padding=1),
        channels_last((1, 1, 16, 24)), channels_last((3, 3, 1, 24), padding=1, groups=24),
        lambda x: relax.op.nn.max_pool2d(x, (2, 2), layout="NHWC"), channels_last((1, 1, 24, 16)),
    )  # fmt: skip
    made = BlockChannels()(mod)
    assert layouts(made) == [
        ("NHWC", "OIHW16o", "NCHW16c"), ("NCHW16c", "OIHW16i24o", "NCHW24c"),
        ("NCHW24c", "OIHW24o", "NCHW24c"), ("NCHW24c", "OIHW24i16o", "NCHW16c"),
    ]  # fmt: skip
    assert conversions(made) == 1  # of the result
    data = RNG.normal(size=(2, 9, 11, 3)).astype("float32")
    expected = run(mod, "main", data)
    np.testing.assert_allclose(run(made, "main", data), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(weft.compile(mod)(data), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "options", "expected"),
    [
        ((1, 1, 16, 32), {}, "NHWC"), ((3, 3, 1, 16), {"groups": 16}, "NHWC"),
        ((3, 3, 16, 32), {"strides": 2}, "NHWC"), ((3, 3, 16, 32), {}, "NCHW16c"),
    ],
)  # fmt: skip
def test_the_only_convolution_of_channels_side_by_side(shape, options, expected):
    """It stays but for windows that Winograd's algorithms, which need blocks, may compute."""
    mod = chain((1, 8, 9, 16), channels_last(shape, **options))
    assert layouts(BlockChannels()(mod))[0][0] == expected


def test_blocks_that_the_program_names_stay():
    blocks = {"data_layout": "NCHW4c", "out_layout": "NCHW4c"}
    mod = chain(
        (1, 2, 6, 6, 4),
        lambda x: relax.op.nn.conv2d(
            x, relax.const(RNG.normal(size=(2, 2, 3, 3, 4, 4)).astype("float32")), padding=1,
            kernel_layout="OIHW4i4o", **blocks
        ),
        relax.op.nn.relu,
        lambda x: relax.op.nn.max_pool2d(x, (2, 2), layout="NCHW4c", out_layout="NCHW4c"),
    )  # fmt: skip
    made = BlockChannels(8)(mod)
    assert layouts(made) == layouts(mod)
    data = RNG.normal(size=(1, 2, 6, 6, 4)).astype("float32")
    np.testing.assert_array_equal(run(made, "main", data), run(mod, "main", data))


def test_channels_last_are_moved_where_the_network_starts_and_where_it_ends():
    """The permutes of an exporter and the conversions to blocks are one copy each."""
    mod = chain(
        (1, 6, 6, 16),
        lambda x: relax.op.permute_dims(x, (0, 3, 1, 2)),
        convolved((32, 16, 3, 3)), relax.op.nn.relu, convolved((16, 32, 1, 1)),
        lambda x: relax.op.permute_dims(x, (0, 2, 3, 1)),
    )  # fmt: skip
    made = relax.get_pipeline("weft")(mod)
    calls = [call for call in collect(made["main"], relax.Call) if len(call.args) > 1]
    names = [call.args[0].name_hint for call in calls if hasattr(call.args[0], "name_hint")]
    assert len(names) == 4
    assert len([name for name in names if "layout_transform" in name]) == 2


@pytest.mark.parametrize(
    ("layers", "channels", "size", "expected"),
    [
        ([(20, 1, 1)], 24, 12, True), ([(20, 1, 1)], 24, 11, False), ([(24, 3, 1)], 24, 40, False),
        ([(24, 3, 24)], 24, 12, True), ([(24, 3, 24)], 24, 11, False),
        ([(24, 5, 24)], 24, 7, True), ([(24, 7, 24)], 24, 40, False),
        ([(24, 1, 1), (24, 1, 1)], 24, 40, False),
    ],
)  # fmt: skip
def test_the_only_convolution_stays_where_its_pixels_make_vectors(layers, channels, size, expected):
    mod = network(*layers, channels=channels, size=size)
    made = BlockChannels()(mod)
    assert (layouts(made)[0][0] == "NCHW") is expected
    assert (conversions(made) == 0) is expected


@pytest.mark.parametrize("layers", [[(20, 1, 1)], [(24, 3, 24)]])
def test_the_only_convolution_gives_the_same_results(layers):
    mod = network(*layers, channels=24, size=33)
    x = RNG.normal(size=(1, 24, 33, 33)).astype("float32")
    expected = run(mod, "main", x)
    found = weft.compile(mod)(x)
    np.testing.assert_allclose(found, np.asarray(expected), rtol=1e-4, atol=1e-4)


def gated(image):
    """An image whose channels are scaled by what two convolutions make of their means."""
    first, second = convolved((4, 24, 1, 1)), convolved((24, 4, 1, 1))
    gate = second(relax.op.nn.relu(first(relax.op.nn.adaptive_avg_pool2d(image, (1, 1)))))
    return relax.op.multiply(image, gate)


def test_convolutions_of_one_pixel_are_no_reason_to_convert_an_image():
    mod = chain((1, 24, 9, 9), gated)
    made = BlockChannels()(mod)
    assert layouts(made) == [("NCHW", "OIHW", "NCHW")] * 2
    x = RNG.normal(size=(1, 24, 9, 9)).astype("float32")
    found = weft.compile(mod)(x)
    np.testing.assert_allclose(found, run(mod, "main", x), rtol=1e-4, atol=1e-4)


def test_convolutions_of_one_pixel_follow_those_of_images():
    mod = chain((1, 24, 9, 9), convolved((24, 24, 3, 3)), gated, convolved((16, 24, 1, 1)))
    assert {blocks[0] for blocks in layouts(BlockChannels()(mod))} <= {"NCHW24c", "NCHW4c"}
