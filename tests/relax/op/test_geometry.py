"""The geometry of convolutions: the same sizes of every layout."""

import pytest

from weft import relax
from weft.ir.attrs import Attrs
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRValueError
from weft.tir.expr import Var as TirVar

N = TirVar("n", "int64")


def convolution(data, kernel, op=relax.op.nn.conv2d, **attributes):
    infos = [TensorStructInfo(dims, "float32") for dims in (data, kernel)]
    tensors = [relax.Var(name, info) for name, info in zip("xw", infos, strict=True)]
    return relax.BlockBuilder().normalize(op(*tensors, **attributes))


LAYOUTS = {
    "NCHW": ((1, 32, 8, 9), (16, 32, 3, 5), {}),
    "NHWC": ((1, 8, 9, 32), (3, 5, 32, 16), {"data_layout": "NHWC", "kernel_layout": "HWIO"}),
    "NCHW8c": ((1, 4, 8, 9, 8), (2, 4, 3, 5, 8, 8), {
        "data_layout": "NCHW8c", "kernel_layout": "OIHW8i8o"}),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sizes_do_not_depend_on_the_layout(layout):
    data, kernel, names = LAYOUTS[layout]
    sizes = geometry_of(convolution(data, kernel, strides=(1, 2), padding=(1, 2, 0, 3), **names))
    assert [int(n) for n in (sizes.batch, sizes.channels, sizes.filters, sizes.depth)] == [
        1, 32, 16, 32,
    ]  # fmt: skip
    assert (sizes.image, sizes.kernel, sizes.steps) == ((8, 9), (3, 5), (1, 2))
    assert sizes.padding == (1, 2, 0, 3)
    assert [int(axis.count) for axis in sizes.space] == [7, 5]
    assert sizes.blocks == ((8, 8) if layout == "NCHW8c" else None)
    assert sizes.is_blocked is (layout == "NCHW8c")


@pytest.mark.parametrize(
    ("kernel", "attributes", "true"),
    [
        ((8, 8, 1, 1), {}, {"is_dense", "is_pointwise", "is_slid"}),
        ((8, 1, 3, 3), {"groups": 8}, {"is_depthwise", "is_slid"}),
        ((8, 2, 3, 3), {"groups": 4, "dilation": 2}, {"is_dilated"}),
        ((16, 1, 3, 3), {"groups": 8, "strides": 2}, set()),
    ],
)
def test_kinds(kernel, attributes, true):
    sizes = geometry_of(convolution((1, 8, 8, 8), kernel, **attributes))
    kinds = ("is_dense", "is_depthwise", "is_pointwise", "is_slid", "is_dilated")
    assert {kind for kind in kinds if getattr(sizes, kind)} == true


def test_symbolic_extents_stay():
    sizes = geometry_of(convolution((N, 4, N, 8), (4, 4, 3, 3)))
    assert sizes.image == (None, 8)
    assert str(sizes.space[0].count) == "n - T.int64(2)"
    assert not sizes.space[0].is_one_pixel


def test_a_transposed_convolution_has_its_channels_first():
    call = convolution((1, 6, 5), (6, 2, 3), relax.op.nn.conv1d_transpose, groups=3, strides=2)
    sizes = geometry_of(call)
    assert [int(n) for n in (sizes.channels, sizes.depth, sizes.filters)] == [6, 6, 2]


def test_unknown_shapes_have_none():
    unknown = TensorStructInfo(None, "float32", ndim=4)
    known = TensorStructInfo((4, 4, 3, 3), "float32")
    call = relax.op.nn.conv2d(relax.Var("x", unknown), relax.Var("w", known))
    assert geometry_of(call) is None


def test_attributes_of_another_number_of_axes_are_refused():
    call = convolution((1, 4, 8, 8), (4, 4, 3, 3))
    wrong = relax.Call(call.op, call.args, Attrs({**call.attrs, "padding": [0, 0]}))
    message = r"relax.nn.conv2d: expected strides and dilation for 1 to 3 axes, and padding before"
    with pytest.raises(IRValueError, match=message):
        relax.BlockBuilder().normalize(wrong)
