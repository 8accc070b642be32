"""Operators against ONNX's reference, with numbers and with symbols as dimensions."""

import numpy as np
import pytest
from onnx import TensorProto

from tests.lib.onnx_models import check, check_node, info, model, node, run, uniform
from weft import relax
from weft.ir.functor import collect
from weft.relax.frontend.onnx import from_onnx
from weft.support.errors import IRValueError

pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]

UNARY = [
    "Abs", "Asin", "Atan", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid",
    "HardSwish", "Identity", "IsNaN", "LeakyRelu", "LogSoftmax", "Mish", "Neg", "Reciprocal",
    "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Softsign", "Tan",
    "Tanh", "Celu", "ThresholdedRelu", "Shrink", "Hardmax",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_node(name, [uniform(3, 4, low=-2, high=2) / (2 if name == "Asin" else 1)], symbolic=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow"])
def test_binary_broadcasts(name, dtype):
    a, b = uniform(2, 1, 3, low=1, high=9), uniform(4, 1, seed=1, low=1, high=4)
    attributes = {"fmod": 1} if name == "Mod" and dtype.startswith("float") else {}
    check_node(name, [a.astype(dtype), b.astype(dtype)], **attributes)


@pytest.mark.parametrize("name", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparisons(name):
    check_node(name, [np.array([1, 2, 3]), np.array([[2], [3]])])


@pytest.mark.parametrize("name", ["Sum", "Mean", "Max", "Min"])
def test_variadic(name):
    check_node(name, [uniform(2, 3), uniform(3, seed=1), uniform(2, 1, seed=2)])
    check_node(name, [uniform(2, 3)])


REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1",
              "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"]  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name):
    x = uniform(2, 3, 4, low=0.5, high=2)
    check_node(name, [x], constants={"axes": np.array([-1, 0])}, keepdims=0, symbolic=True)
    check_node(name, [x])
    check_node(name, [x], noop_with_empty_axes=1, constants={"axes": np.array([], "int64")})


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_arg_reductions_choose_the_first_or_last_of_equal_ones(name, last):
    x = np.array([[3, 1, 3], [1, 1, 2]], "float32")
    check_node(name, [x], axis=1, select_last_index=last, symbolic=True)


def test_gather_family_counts_negative_indices_from_the_end():
    x = uniform(3, 4)
    check_node("Gather", [x, np.array([[-1, 0]])], axis=1, symbolic=True)
    check_node("GatherElements", [x, np.array([[-1, 0, 1, 2]])], axis=0)
    check_node("GatherND", [x, np.array([[-1, 0], [2, -4]])])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_scatter_family(reduction):
    x, updates = uniform(4, 3), uniform(2, 3, seed=1)
    indices = np.array([[0, 1, -1], [2, 0, 1]])
    check_node("ScatterElements", [x, indices, updates], reduction=reduction)
    check_node("ScatterND", [x, np.array([[1], [-1]]), updates], reduction=reduction)


def test_slices():
    x = uniform(5, 6)
    for starts, ends, steps in ([1, 0], [-1, 9], [1, 2]), ([4, -1], [-99, 1], [-1, -2]):
        check_node("Slice", [x], constants={
            "starts": np.array(starts), "ends": np.array(ends), "axes": np.array([0, 1]),
            "steps": np.array(steps),
        })  # fmt: skip


def test_split_concat_tile_transpose():
    check_node("Split", [uniform(5, 2)], outputs="y z", num_outputs=2)
    check_node("Split", [uniform(5, 2)], outputs="y z", constants={"s": np.array([1, 4])})
    check_node("Concat", [uniform(2, 3), uniform(2, 1)], axis=-1)
    check_node("Tile", [uniform(2, 3)], constants={"r": np.array([2, 3])})
    check_node("Transpose", [uniform(2, 3, 4)], perm=[2, 0, 1], symbolic=True)


def test_shapes():
    x = uniform(2, 3, 4)
    check_node("Shape", [x], start=1, end=-1, symbolic=True)
    check_node("Size", [x], symbolic=True)
    check_node("Flatten", [x], axis=-1, symbolic=True)
    check_node("Reshape", [x], constants={"s": np.array([0, -1])}, symbolic=True)
    check_node("Squeeze", [uniform(1, 3, 1)])
    check_node("Unsqueeze", [x], constants={"axes": np.array([0, -1])}, symbolic=True)
    check_node("Expand", [uniform(3, 1)], constants={"s": np.array([2, 1, 4])})


def test_results_whose_size_the_data_gives():
    x = np.array([[0, 2, 0], [3, 0, 0]], "float32")
    check_node("NonZero", [x], symbolic=True)
    check_node("Compress", [x, np.array([True, False, True])], axis=1)
    check_node("Unique", [np.array([3, 1, 3, 2], "float32")], outputs="y i j c")


def test_top_k_and_friends():
    x = uniform(3, 5)
    check_node("TopK", [x], outputs="y i", constants={"k": np.array([2])}, axis=1, largest=0)
    check_node("Trilu", [x], constants={"k": np.array(1)}, upper=0)
    check_node("CumSum", [x], constants={"axis": np.array(1)}, reverse=1, exclusive=1)
    check_node("EyeLike", [x], k=1)
    check_node("OneHot", [np.array([1, -1])], axis=0,
               constants={"depth": np.array(3), "values": np.array([2.0, 5.0])})  # fmt: skip
    check_node("Where", [x > 0, x, -x])
    check_node("Det", [uniform(2, 3, 3)], rtol=1e-4)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_pad(mode):
    check_node("Pad", [uniform(3, 4)], constants={"p": np.array([1, 2, 0, 1])}, mode=mode)


def test_pad_cuts_and_takes_axes():
    from tests.lib.onnx_models import run
    from weft.relax.frontend.onnx import from_onnx

    x = uniform(3, 4)
    proto = model([node("Pad", "x p", "y")], [info("x", shape=["n", 4])], ["y"],
                  constants={"p": np.array([-1, 2, 0, -1])})  # fmt: skip
    np.testing.assert_array_equal(run(from_onnx(proto), x), np.pad(x[1:, :-1], [(0, 0), (2, 0)]))
    constants = {"p": np.array([1, 1]), "v": np.array(3, "float32"), "axes": np.array([1])}
    check_node("Pad", [uniform(3, 4)], constants=constants)


def test_matrix_products():
    check_node("MatMul", [uniform(2, 3, 4), uniform(4, 5, seed=1)])
    check_node("Gemm", [uniform(4, 3), uniform(2, 4, seed=1), uniform(2, seed=2)], transA=1,
               transB=1, alpha=0.5, beta=2.0)  # fmt: skip
    check_node("Einsum", [uniform(2, 3), uniform(3, 4, seed=1)], equation="ij,jk->ki")


@pytest.mark.parametrize(
    "attributes",
    [{}, {"pads": [1, 0, 2, 1]}, {"strides": [2, 1], "dilations": [1, 2]},
     {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, {"auto_pad": "SAME_LOWER"},
     {"auto_pad": "VALID"}],
)  # fmt: skip
def test_convolution(attributes):
    x, w, b = uniform(1, 4, 7, 6), uniform(2, 4, 3, 2, seed=1), uniform(2, seed=2)
    check_node("Conv", [x], constants={"w": w, "b": b}, **attributes)
    check_node("Conv", [x], constants={"w": w, "b": b}, symbolic=True, **attributes)


def test_convolutions_of_groups_and_other_ranks():
    check_node("Conv", [uniform(2, 4, 9), uniform(4, 1, 3)], group=4)
    check_node("Conv", [uniform(1, 2, 4, 4, 4), uniform(3, 2, 2, 2, 2)])
    check_node("ConvTranspose", [uniform(1, 2, 4, 4), uniform(2, 3, 3, 3)], strides=[2, 2],
               output_padding=[1, 1], pads=[1, 0, 0, 1])  # fmt: skip


@pytest.mark.parametrize("ceil", [0, 1])
def test_pools(ceil):
    x = uniform(1, 2, 7, 8)
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": ceil}
    check_node("MaxPool", [x], outputs="y i", pads=[1, 1, 1, 1], **options)
    check_node("AveragePool", [x], pads=[1, 0, 1, 0], count_include_pad=1, **options)
    check_node("AveragePool", [x], pads=[1, 0, 1, 0], **options)
    check_node("GlobalAveragePool", [x], symbolic=True)
    check_node("GlobalMaxPool", [x], symbolic=True)


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("shape", [[1, 1, 3, 3], [1, 1, "h", "w"]])
def test_no_window_of_a_pool_starts_in_the_padding(name, shape):
    call = node(name, "x", "y", kernel_shape=[2, 2], strides=[2, 2], pads=[1] * 4, ceil_mode=1)
    check(model([call], [info("x", shape=shape)], ["y"]), uniform(1, 1, 3, 3))


SMALL = [  # the elements, the window, the step
    (1, 2, 2), (1, 3, 3), (2, 3, 2), (2, 3, 4), (4, 3, 2),
]  # fmt: skip


@pytest.mark.parametrize(("size", "kernel", "step"), SMALL)
@pytest.mark.parametrize("extent", ["n", None])
@pytest.mark.parametrize("name", ["MaxPool", "AveragePool"])
def test_ceil_mode_makes_a_window_of_fewer_elements(name, extent, size, kernel, step):
    """The only rounding of ONNX by which data smaller than the window has one."""
    call = node(name, "x", "y", kernel_shape=[kernel], strides=[step], ceil_mode=1)
    x = uniform(1, 2, size)
    whole = range(0, max(size - kernel, 0) + step, step)
    starts = [at for at in whole if at < size]
    parts = [x[..., at : at + kernel] for at in starts]
    wanted = [part.max(-1) if name == "MaxPool" else part.mean(-1) for part in parts]
    mod = from_onnx(model([call], [info("x", shape=[1, 2, extent or size])], ["y"]))
    np.testing.assert_allclose(run(mod, x), np.stack(wanted, -1), rtol=1e-6)


def test_what_the_run_finds_smaller_than_a_window_is_named():
    call = node("MaxPool", "x", "y", kernel_shape=[2], strides=[2])
    mod = from_onnx(model([call], [info("x", shape=[1, 2, "n"])], ["y"]))
    with pytest.raises(IRValueError, match=r"max_pool1d_window: expected .* n=1, got \(1, 2, 1\)"):
        run(mod, uniform(1, 2, 1))


def test_normalizations():
    x, scale, bias = uniform(2, 4, 3), uniform(4, seed=1), uniform(4, seed=2)
    check_node("InstanceNormalization", [x, scale, bias])
    check_node("LayerNormalization", [x, uniform(3, seed=1), uniform(3)], outputs="y m d")
    check_node("GroupNormalization", [x, scale, bias], num_groups=2)
    check_node("LpNormalization", [x], p=2, axis=1)
    mean, variance = uniform(4, seed=3), uniform(4, low=1, high=2)
    check_node("BatchNormalization", [x, scale, bias, mean, variance])
    check_node("MeanVarianceNormalization", [uniform(2, 3, 2, 2)])


@pytest.mark.parametrize("to", ["FLOAT16", "DOUBLE", "INT8", "UINT8", "INT64", "BOOL"])
def test_casts(to):
    x = np.array([-3.7, -0.2, 0, 2.5, 100], "float32")
    x = np.abs(x) if to == "UINT8" else x
    check_node("Cast", [x], to=getattr(TensorProto, to), symbolic=True)


def test_depth_and_space():
    check_node("DepthToSpace", [uniform(1, 8, 2, 3)], blocksize=2, mode="CRD", symbolic=True)
    check_node("SpaceToDepth", [uniform(1, 2, 4, 6)], blocksize=2, symbolic=True)


def test_norms_that_onnx_s_reference_computes_otherwise_than_its_text():
    """L1 is the sum of magnitudes; of an odd window LRN reads as many channels on both sides."""
    from tests.lib.onnx_models import run
    from weft.relax.frontend.onnx import from_onnx

    x = uniform(1, 5, 2, 2)
    proto = model([node("LpNormalization", "x", "y", p=1, axis=1)], [info("x", shape=x.shape)],
                  ["y"])  # fmt: skip
    wanted = x / np.abs(x).sum(1, keepdims=True)
    np.testing.assert_allclose(run(from_onnx(proto), x), wanted, rtol=1e-5)
    proto = model([node("LRN", "x", "y", size=3, alpha=0.6)], [info("x", shape=x.shape)], ["y"])
    around = np.pad(x, [(0, 0), (1, 1), (0, 0), (0, 0)]) ** 2
    sums = around[:, :-2] + around[:, 1:-1] + around[:, 2:]
    np.testing.assert_allclose(run(from_onnx(proto), x), x / (1 + 0.2 * sums) ** 0.75, rtol=1e-5)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_windows_of_local_response_norms(size):
    """ONNX's reference takes the batch for the channels; here there are as many."""
    check_node("LRN", [uniform(5, 5, 1, 2)], size=size, alpha=0.6, bias=1.5)


def test_losses_by_their_definition():
    scores, labels = uniform(3, 5), np.array([1, 0, 4])
    check_node("SoftmaxCrossEntropyLoss", [scores, labels])
    check_node("NegativeLogLikelihoodLoss", [scores, labels], reduction="sum")


def test_random_numbers_have_shape_type_and_distribution():
    from tests.lib.onnx_models import run
    from weft.relax.frontend.onnx import from_onnx

    def drawn(name, **attributes):
        proto = model([node(name, "", "y", **attributes)], [], ["y"])
        return run(from_onnx(proto)), run(from_onnx(proto))

    numbers, again = drawn("RandomNormal", shape=[100, 50], mean=2.0, scale=3.0, seed=1.0)
    np.testing.assert_array_equal(numbers, again)
    assert numbers.shape == (100, 50)
    assert numbers.dtype == np.float32
    assert abs(numbers.mean() - 2) < 0.2
    assert abs(numbers.std() - 3) < 0.2
    numbers, _ = drawn("RandomUniform", shape=[5000], low=-1.0, high=3.0, dtype=11)
    assert numbers.dtype == np.float64
    assert -1 <= numbers.min() < -0.9
    assert 2.9 < numbers.max() <= 3
    chances = np.full(5000, 0.25, "float32")
    proto = model([node("Bernoulli", "x", "y")], [info("x", shape=[5000])], ["y"])
    assert abs(run(from_onnx(proto), chances).mean() - 0.25) < 0.05


def test_optional_inputs_may_be_left_out_in_the_middle():
    proto = model([node("Clip", "x - high", "y")], [info("x", shape=["n"])], ["y"],
                  constants={"high": np.array(0.25, "float32")})  # fmt: skip
    check(proto, uniform(9))


@pytest.mark.parametrize(
    ("name", "operands", "constant", "is_removed"),
    [
        ("Add", "x c", [0.0], True), ("Add", "c x", [[0.0]], True), ("Sub", "x c", 0.0, True),
        ("Sub", "c x", 0.0, False), ("Mul", "c x", 1.0, True), ("Div", "x c", [1.0], True),
        ("Div", "c x", 1.0, False), ("Add", "x c", [[[0.0]]], False), ("Mul", "x c", 0.0, False),
        ("Add", "x c", [0.0, 0.0, 0.0], False),
    ],
)  # fmt: skip
def test_sums_with_zero_and_products_with_one_are_their_operand(
    name, operands, constant, is_removed
):
    given = info("x", "float32", ("n", 3))
    constants = {"c": np.array(constant, "float32")}
    proto = model([node(name, operands, "y")], [given], ["y"], constants=constants)
    check(proto, uniform(2, 3) + 1)
    left = {call.op.name for call in collect(from_onnx(proto)["main"].body, relax.Call)}
    assert (not left) == is_removed
