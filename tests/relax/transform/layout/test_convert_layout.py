"""ConvertLayout: chosen convolutions get their layout, what follows them computes the same."""

import numpy as np
import pytest

from weft import relax
from weft.relax import op
from weft.relax.reference import run
from weft.relax.transform import ConvertLayout
from weft.relax.transform.layout.layouts.order import identity, index_map, order_of, permutation
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError

pytestmark = pytest.mark.sampled(3)

CHANNELS_LAST = {"relax.nn.conv2d": ["NHWC", "OHWI"]}
BLOCKED = {"relax.nn.conv2d": ["NCHW4c", "OIHW4o"]}
RNG = np.random.default_rng(0)


def test_what_follows_a_convolution_stays_in_its_layout(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 3, 6, 6), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
                 b: R.Tensor((1, 4, 1, 1), "float32")):  # fmt: skip
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                c = R.add(a, b)
                d = R.nn.relu(c)
                out = R.sum(d, axis=[1])
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((1, 3, 6, 6), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
                 b: R.Tensor((1, 4, 1, 1), "float32")):  # fmt: skip
            with R.dataflow():
                xt = R.permute_dims(x, [0, 2, 3, 1])
                wt = R.permute_dims(w, [0, 2, 3, 1])
                a = R.nn.conv2d(xt, wt, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
                bt = R.permute_dims(b, [0, 2, 3, 1])
                c = R.add(a, bt)
                d = R.nn.relu(c)
                out = R.sum(d, axis=[3])
                R.output(out)
            return out

    made = check(ConvertLayout(CHANNELS_LAST), Before, Expected)
    data = [RNG.integers(-3, 4, s).astype("float32") for s in [(1, 3, 6, 6), (4, 3, 3, 3)]]
    check_native(Before, made, *data, np.ones((1, 4, 1, 1), "float32"))


def test_blocks(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 8, 6, 6), "float32"), w: R.Tensor((4, 8, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                out = R.nn.relu(a)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((1, 8, 6, 6), "float32"), w: R.Tensor((4, 8, 3, 3), "float32")):
            with R.dataflow():
                xt = R.layout_transform(
                    x,
                    T.index_map(
                        lambda i0, i1, i2, i3: (i0, i1 // 4, i2, i3, i1 % 4), index_dtype="int32"
                    ),
                )
                wt = R.layout_transform(
                    w,
                    T.index_map(
                        lambda i0, i1, i2, i3: (i0 // 4, i1, i2, i3, i0 % 4), index_dtype="int32"
                    ),
                )
                a = R.nn.conv2d(
                    xt, wt, data_layout="NCHW4c", kernel_layout="OIHW4o", out_layout="NCHW4c"
                )
                d = R.nn.relu(a)
                out = R.layout_transform(
                    d,
                    T.index_map(
                        lambda i0, i1, i2, i3, i4: (i0, i1 * 4 + i4, i2, i3), index_dtype="int32"
                    ),
                )
                R.output(out)
            return out  # fmt: skip

    check(ConvertLayout(BLOCKED), Before, Expected)


def model(function, shape=(2, 8, 5, 6), bound=4):
    """``function`` of a convolution of 8 channels and of a second tensor like it."""
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    weight = RNG.integers(-1, 2, (8, 8, 3, 3)).astype("float32")
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(op.nn.conv2d(x, relax.const(weight), padding=1))
            out = bb.emit_output(function(bb, conv, x))
        bb.emit_func_output(out)
    return bb.get(), RNG.integers(1 - bound, bound, shape).astype("float32")


def parts(bb, value, *indices):
    value = bb.emit(value)
    return relax.Tuple([bb.emit(relax.TupleGetItem(value, index)) for index in indices])


def constant(*shape):
    return relax.const(RNG.integers(-2, 3, shape).astype("float32"))


FOLLOWERS = {
    "relu": lambda bb, y, x: op.nn.relu(y),
    "clip": lambda bb, y, x: op.clip(y, -2.0, 3.0),
    "astype": lambda bb, y, x: op.astype(y, "int32"),
    "prelu": lambda bb, y, x: op.nn.prelu(y, constant(8), axis=1),
    "add same": lambda bb, y, x: op.add(y, x),
    "add left": lambda bb, y, x: op.add(x, y),
    "broadcast 1": lambda bb, y, x: op.add(y, constant(1, 8, 1, 1)),
    "broadcast rank 3": lambda bb, y, x: op.multiply(y, constant(8, 1, 1)),
    "broadcast rank 1": lambda bb, y, x: op.subtract(constant(6), y),
    "broadcast one element": lambda bb, y, x: op.multiply(constant(1), y),
    "broadcast rank 5": lambda bb, y, x: op.add(constant(3, 1, 8, 1, 1), y),
    "broadcast channels of 1": lambda bb, y, x: op.add(y, constant(2, 1, 5, 6)),
    "scalar": lambda bb, y, x: op.add(relax.const(2.0, "float32"), y),
    "comparison": lambda bb, y, x: op.greater(y, constant(8, 1, 1)),
    "where": lambda bb, y, x: op.where(op.greater(y, x), y, constant(8, 1, 1)),
    "fma": lambda bb, y, x: op.ewise_fma(y, x, y),
    "sum": lambda bb, y, x: op.sum(y),
    "sum of axes": lambda bb, y, x: op.sum(y, axis=[1, -1]),
    "sum of one axis": lambda bb, y, x: op.sum(y, axis=2),
    "sum keepdims": lambda bb, y, x: op.sum(y, axis=[1], keepdims=True),
    "max keepdims": lambda bb, y, x: op.max(y, axis=[2, 3], keepdims=True),
    "sum and back": lambda bb, y, x: op.add(op.sum(y, axis=[0]), constant(8, 5, 6)),
    "argmax": lambda bb, y, x: op.argmax(y, axis=1),
    "argmin": lambda bb, y, x: op.argmin(y, axis=-1, keepdims=True),
    "argmax flat": lambda bb, y, x: op.argmax(y),
    "cumsum": lambda bb, y, x: op.cumsum(y, axis=1),
    "cumsum flat": lambda bb, y, x: op.cumsum(y),
    "flip": lambda bb, y, x: op.flip(y, 1),
    "slice": lambda bb, y, x: op.strided_slice(y, [1, 3], [1, 0], [7, 6], [2, 3]),
    "slice from the end": lambda bb, y, x: op.strided_slice(y, [-3], [-1], [-9], [-2]),
    "dynamic slice": lambda bb, y, x: op.dynamic_strided_slice(
        y, *[relax.const(np.array(v, "int64")) for v in ([0, 1, 0, 2], [2, 7, 5, 6], [1, 2, 1, 1])]
    ),
    "concat": lambda bb, y, x: op.concat([y, x], axis=1),
    "concat first other": lambda bb, y, x: op.concat([x, y, y], axis=-2),
    "concat flat": lambda bb, y, x: op.concat(
        [bb.emit(op.sum(y, axis=[0, 1, 2])), constant(3)], axis=None
    ),
    "split": lambda bb, y, x: parts(bb, op.split(y, 2, axis=1), 1, 0),
    "split at blocks": lambda bb, y, x: parts(bb, op.split(y, [4], axis=1), 0, 1),
    "split in blocks": lambda bb, y, x: parts(bb, op.split(y, [3, 6], axis=-3), 0, 2),
    "split in eight": lambda bb, y, x: parts(bb, op.split(y, 8, axis=1), 3, 5),
    "split space": lambda bb, y, x: parts(bb, op.split(y, 3, axis=3), 2, 1),
    "permute": lambda bb, y, x: op.permute_dims(y, [3, 0, 1, 2]),
    "transpose": lambda bb, y, x: op.permute_dims(y),
    "expand": lambda bb, y, x: op.expand_dims(y, [1, -1]),
    "expand and add": lambda bb, y, x: op.add(op.expand_dims(y, [0]), constant(3, 1, 8, 1, 1)),
    "squeeze": lambda bb, y, x: op.squeeze(op.sum(y, axis=[1], keepdims=True), [1]),
    "squeeze all": lambda bb, y, x: op.squeeze(op.sum(y, axis=[2], keepdims=True)),
    "reshape": lambda bb, y, x: op.reshape(y, (2, -1)),
    "take": lambda bb, y, x: op.take(y, relax.const(np.array([2, 1], "int64")), axis=1),
    "tile": lambda bb, y, x: op.tile(y, (2, 1, 2)),
    "pad": lambda bb, y, x: op.nn.pad(y, [0, 0, 1, 2, 0, 1, 3, 0], pad_value=5.0),
    "pad reflect": lambda bb, y, x: op.nn.pad(y, [0, 0, 2, 0, 0, 1, 3, 0], "reflect"),
    "max pool": lambda bb, y, x: op.nn.max_pool2d(y, (2, 3), (2, 1), (1, 0), ceil_mode=True),
    "avg pool": lambda bb, y, x: op.nn.avg_pool2d(y, (2, 3), padding=1, count_include_pad=True),
    "adaptive pool": lambda bb, y, x: op.nn.adaptive_avg_pool2d(y, (2, 4)),
    "adaptive max pool": lambda bb, y, x: op.nn.adaptive_max_pool2d(y, (3, 2)),
    "resize": lambda bb, y, x: op.image.resize2d(y, (10, 4), method="linear"),
    "resize cubic": lambda bb, y, x: op.image.resize2d(
        y, (4, 7), method="cubic", coordinate_transformation_mode="align_corners"
    ),
    "softmax": lambda bb, y, x: op.nn.softmax(y, axis=1),
    "log softmax": lambda bb, y, x: op.nn.log_softmax(y, axis=-1),
    "batch norm": lambda bb, y, x: parts(
        bb,
        op.nn.batch_norm(
            y, constant(8), constant(8), constant(8), op.abs(constant(8)), axis=1, training=False
        ),
        0, 2,
    ),
    "layer norm of space": lambda bb, y, x: op.nn.layer_norm(
        y, constant(5, 6), constant(5, 6), axes=[-2, -1]
    ),
    "layer norm of all": lambda bb, y, x: op.nn.layer_norm(
        y, constant(8, 5, 6), constant(8, 5, 6), axes=[1, 2, 3]
    ),
    "rms norm": lambda bb, y, x: op.nn.rms_norm(y, constant(8, 5, 6), axes=[1, 2, 3]),
    "group norm": lambda bb, y, x: op.nn.group_norm(
        y, constant(8), constant(8), num_groups=2, channel_axis=1, axes=[2, 3]
    ),
    "instance norm": lambda bb, y, x: op.nn.instance_norm(
        y, constant(8), constant(8), channel_axis=1, axes=[2, 3]
    ),
    "second convolution": lambda bb, y, x: op.nn.conv2d(op.nn.relu(y), constant(4, 8, 2, 2)),
    "grouped": lambda bb, y, x: op.nn.conv2d(y, constant(8, 1, 3, 3), groups=8),
    "tuple": lambda bb, y, x: bb.emit(relax.Tuple([y, bb.emit(relax.Tuple([x, y]))])),
    "nested tuple": lambda bb, y, x: op.nn.relu(
        bb.emit(relax.TupleGetItem(bb.emit(relax.Tuple([x, y])), 1))
    ),
}  # fmt: skip

TOLERANT = {"softmax", "log softmax", "batch norm", "layer norm of space", "layer norm of all",
            "rms norm", "group norm", "instance norm", "resize", "resize cubic", "avg pool",
            "adaptive pool"}  # fmt: skip


NATIVE = ["broadcast 1", "broadcast rank 3", "broadcast channels of 1", "slice", "argmax", "argmin",
          "concat", "split in blocks", "pad", "max pool", "sum keepdims", "squeeze", "permute",
          "second convolution"]  # fmt: skip


def values(result):
    return [v for item in result for v in values(item)] if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("desired", [CHANNELS_LAST, BLOCKED], ids=["NHWC", "NCHW4c"])
@pytest.mark.parametrize("follower", FOLLOWERS)
def test_results_are_the_same(follower, desired):
    before, data = model(FOLLOWERS[follower])
    made = ConvertLayout(desired)(before)
    assert f'data_layout="{desired["relax.nn.conv2d"][0]}"' in made.script()
    assert relax.analysis.well_formed(made)
    left, right = (values(run(m, "main", data)) for m in (before, made))
    tolerance = 1e-5 if follower in TOLERANT else 0.0
    for one, other in zip(left, right, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("desired", [CHANNELS_LAST, BLOCKED], ids=["NHWC", "NCHW4c"])
def test_compiled_results_are_the_same(desired, check_native):
    followers = [FOLLOWERS[name] for name in NATIVE]

    def all_of_them(bb, y, x):
        return bb.emit(relax.Tuple([bb.emit(follower(bb, y, x)) for follower in followers]))

    before, data = model(all_of_them)
    check_native(before, ConvertLayout(desired)(before), data)


BLOCKS = {
    "one block for all": ((2, 8, 6, 7), (8, 8, 3, 3), ["NCHW4c", "OIHW4i4o"], {"padding": 1}),
    "as CPUs like it": ((1, 32, 5, 5), (16, 32, 3, 3), ["NCHW16c", "OIHW16i16o"], {"padding": 1}),
    "blocks that differ": (
        (2, 8, 9, 8), (8, 8, 3, 3), ["NCHW4c", "OIHW2i8o"], {"strides": 2, "dilation": 2},
    ),
    "groups": ((2, 8, 6, 7), (8, 4, 3, 3), ["NCHW4c", "OIHW4o"], {"groups": 2}),
    "a kernel for each channel": ((2, 8, 6, 7), (8, 1, 3, 3), ["NCHW4c", "OIHW4o"], {"groups": 8}),
    "another result": ((2, 8, 6, 7), (8, 8, 3, 3), ["NCHW4c", "OIHW4i4o", "NCHW8c"], {}),
    "a plain result": ((2, 8, 6, 7), (8, 8, 3, 3), ["NHWC4c", "OIHW4i4o", "NCHW"], {}),
    "the batch too": ((4, 8, 6, 7), (8, 8, 3, 3), ["NCHW2n4c", "OIHW4i4o"], {}),
    "one axis": ((2, 8, 6), (8, 8, 3), ["NCW4c", "OIW4i4o"], {"padding": (1, 2)}),
    "three axes": ((2, 8, 4, 4, 4), (8, 8, 3, 3, 3), ["NCDHW4c", "OIDHW4i4o"], {}),
}  # fmt: skip


def convolution(shape, kernel, **attrs):
    """A module with a convolution and what usually follows, and data."""
    rank = len(shape) - 2
    convolve = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}[rank]
    pool = {1: op.nn.max_pool1d, 2: op.nn.max_pool2d, 3: op.nn.max_pool3d}[rank]
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(convolve(x, constant(*kernel), **attrs))
            statistics = [constant(kernel[0]) for _ in range(3)]
            y = bb.emit(
                op.nn.batch_norm(y, *statistics, relax.const(np.ones(kernel[0], "float32")), 1)
            )
            y = bb.emit(op.nn.relu(bb.emit(relax.TupleGetItem(y, 0))))
            out = bb.emit_output(pool(y, 2))
        bb.emit_func_output(out)
    return bb.get(), RNG.integers(-3, 4, shape).astype("float32")


@pytest.mark.parametrize("name", BLOCKS)
def test_blocked_convolutions_compile_to_the_same(name, check_native):
    shape, kernel, desired, attrs = BLOCKS[name]
    before, data = convolution(shape, kernel, **attrs)
    made = ConvertLayout({f"relax.nn.conv{len(shape) - 2}d": desired})(before)
    assert f'data_layout="{desired[0]}"' in made.script()
    check_native(before, made, data, tolerance=1e-4)


def test_a_tensor_is_converted_once_for_all_that_want_it(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 4, 6, 6), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                b = R.nn.conv2d(x, w, strides=[2, 2])
                c = R.flatten(a)
                d = R.reshape(a, (4, 16))
                R.output(b, c, d)
            return (b, c, d)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((1, 4, 6, 6), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
            with R.dataflow():
                xt = R.permute_dims(x, [0, 2, 3, 1])
                wt = R.permute_dims(w, [0, 2, 3, 1])
                a = R.nn.conv2d(xt, wt, data_layout="NHWC", kernel_layout="OHWI", out_layout="NHWC")
                bt = R.nn.conv2d(
                    xt,
                    wt,
                    strides=[2, 2],
                    data_layout="NHWC",
                    kernel_layout="OHWI",
                    out_layout="NHWC",
                )
                b = R.permute_dims(bt, [0, 3, 1, 2])
                at = R.permute_dims(a, [0, 3, 1, 2])
                c = R.flatten(at)
                d = R.reshape(at, (4, 16))
                R.output(b, c, d)
            return (b, c, d)  # fmt: skip

    data = [RNG.integers(-3, 4, s).astype("float32") for s in [(1, 4, 6, 6), (4, 4, 3, 3)]]
    check_native(Before, check(ConvertLayout(CHANNELS_LAST), Before, Expected, *data), *data)


def test_a_conversion_is_not_shared_between_blocks():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 4, 6, 6), "float32"), w: R.Tensor((4, 4, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                R.output(a)
            s = R.exp(a)
            with R.dataflow():
                b = R.nn.conv2d(x, w)
                R.output(b)
            return (s, b)

    made = ConvertLayout(CHANNELS_LAST)(Before)
    assert relax.analysis.well_formed(made)
    assert made.script().count("R.permute_dims(x") == 2


def layouts(mod):
    values = relax.analysis.get_var2val(mod["main"]).values()
    return [value.attrs["data_layout"] for value in values if "data_layout" in (value.attrs or {})]


def test_extents_that_are_no_multiples_of_blocks_stay(check):
    before, _ = model(lambda bb, y, x: op.nn.relu(y))
    made = ConvertLayout({"relax.nn.conv2d": ["NCHW3c", "OIHW3o"]})(before)
    assert made is before


def test_only_the_convolution_whose_channels_fit_is_blocked():
    before, _ = model(lambda bb, y, x: op.nn.conv2d(y, constant(6, 8, 1, 1)))
    assert layouts(ConvertLayout(BLOCKED)(before)) == ["NCHW4c", "NCHW"]


def test_a_third_layout_is_that_of_the_result(check_native):
    before, data = model(lambda bb, y, x: op.nn.relu(y))
    made = ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO", "NCHW"]})(before)
    assert 'out_layout="NCHW"' in made.script()
    check_native(before, made, data)


def test_a_cast_names_the_stored_extents(check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((1, 3, 6, 6), "float32"), w: R.Tensor("float32", ndim=4)):
            n = T.int64()
            m = T.int64()
            c = T.int64()
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                cast: R.Tensor((1, c, n, m), "float32") = R.match_cast(
                    a, R.Tensor((1, c, n, m), "float32")
                )
                shaped = R.strided_slice(cast, [2], [0], [2])
                out = R.nn.relu(shaped)
                R.output(out)
            return out

    made = ConvertLayout(CHANNELS_LAST)(Before)
    assert "R.Tensor((1, n, m, c)" in made.script()
    data = [RNG.integers(-3, 4, s).astype("float32") for s in [(1, 3, 6, 6), (4, 3, 3, 2)]]
    check_native(Before, made, *data)


def test_symbolic_extents(check_native):
    n = T.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 3, 6, 6), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(op.nn.conv2d(x, constant(4, 3, 3, 3)))
            out = bb.emit_output(op.mean(op.add(conv, conv), axis=[2, 3]))
        bb.emit_func_output(out)
    before = bb.get()
    made = ConvertLayout(CHANNELS_LAST)(before)
    assert layouts(made) == ["NHWC"]
    for size in (0, 1, 3):
        check_native(before, made, np.ones((size, 3, 6, 6), "float32"))


@pytest.mark.parametrize(
    ("rank", "data", "kernel"), [(1, "NWC", "OWI"), (3, "NDHWC", "DHWIO")], ids=["1d", "3d"]
)
def test_other_ranks(rank, data, kernel, check_native):
    convolve = {1: op.nn.conv1d, 3: op.nn.conv3d}[rank]
    pool = {1: op.nn.max_pool1d, 3: op.nn.max_pool3d}[rank]
    shape = (2, 3, *[5] * rank)
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            conv = bb.emit(convolve(x, constant(4, 3, *[2] * rank)))
            out = bb.emit_output(pool(bb.emit(op.nn.relu(conv)), 2))
        bb.emit_func_output(out)
    before = bb.get()
    made = ConvertLayout({f"relax.nn.conv{rank}d": [data, kernel]})(before)
    assert layouts(made) == [data]
    check_native(before, made, RNG.integers(-3, 4, shape).astype("float32"))


def test_a_resize_can_be_asked_for(check_native):
    before, data = model(lambda bb, y, x: op.image.resize2d(y, (3, 9), method="nearest_neighbor"))
    made = ConvertLayout({"relax.image.resize2d": ["NHWC"]})(before)
    assert 'layout="NHWC", method' in made.script()
    assert layouts(made) == ["NCHW"]
    check_native(before, made, data, tolerance=1e-5)


def test_tensors_of_unknown_rank_keep_the_order_of_the_program():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor("float32"), y: R.Tensor("float32")):
            with R.dataflow():
                a = R.add(x, y)
                b = R.sum(a, axis=[1])
                out = R.nn.relu(b)
                R.output(out)
            return out

    assert ConvertLayout(CHANNELS_LAST)(Before) is Before


def test_calls_of_functions_take_the_order_of_the_program(check_native):
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def first_row(A: T.Buffer((1, 4, 4, 5), "float32"), B: T.Buffer((5,), "float32")):
            for i in range(5):
                with T.block("row"):
                    vi = T.axis.spatial(5, i)
                    B[vi] = A[0, 1, 2, vi]

        @R.function
        def main(x: R.Tensor((1, 3, 6, 7), "float32"), w: R.Tensor((4, 3, 3, 3), "float32")):
            with R.dataflow():
                a = R.nn.conv2d(x, w)
                s = R.shape_of(a)
                b = R.reshape(a, s)
                c = R.add(a, b)
                out = R.call_tir(Before.first_row, (c,), out_sinfo=R.Tensor((5,), "float32"))
                R.output(out)
            return out

    made = ConvertLayout(CHANNELS_LAST)(Before)
    assert layouts(made) == ["NHWC"]
    data = [RNG.integers(-3, 4, s).astype("float32") for s in [(1, 3, 6, 7), (4, 3, 3, 3)]]
    check_native(Before, made, *data)


def test_layouts_that_cannot_be_asked_for_are_an_error():
    with pytest.raises(PassError, match=r"no layout can be asked for relax\.add; others follow"):
        ConvertLayout({"relax.add": ["NHWC"]})


def test_orders():
    last, blocked = order_of("NCHW", "NHWC"), order_of("NCHW", "NCHW4c")
    assert permutation(identity(4), last) == [0, 2, 3, 1]
    assert permutation(last, blocked) is None
    there, back = index_map(last, blocked), index_map(blocked, last)
    assert [int(v.value) for v in there.map_indices([1, 2, 3, 7])] == [1, 1, 2, 3, 3]
    assert [int(v.value) for v in back.map_indices([1, 1, 2, 3, 3])] == [1, 2, 3, 7]
    assert last.without([1]) == identity(3)
    assert last.below(5).axes == ((0, 0), (1, 0), (3, 0), (4, 0), (2, 0))


def test_cost_is_linear(calls):
    def chain(count):
        def body(bb, y, x):
            for _ in range(count):
                y = bb.emit(op.nn.relu(op.add(y, x)))
            return y

        return model(body)[0]

    few, many = (calls(ConvertLayout(CHANNELS_LAST), chain(count)) for count in (20, 160))
    assert many < 1.35 * 8 * few
