"""SplitResizes: images of any size are resized along the columns after the other axes.

Before: ``y = resize2d(x, (a, b))`` of ``x[n, c, h, w]``, linear or cubic, and ``w`` or ``b`` only
known at run time. After: ``y = resize2d(resize2d(x, (a, w)), (a, b))``.

The weights of a pixel are products of those of its row and of its column, so that the sums are the
same. Where the neighbours of a column lie, only the run tells, and a vector of columns is gathered,
element by element. Along rows nothing is gathered. So a pixel of a linear resize takes two gathers
instead of four, one of a cubic resize four instead of sixteen, for an image that is written and
read once more. Where the size is known, vectors are loaded and shuffled (ShuffleLoad), and the
resize stays whole. So does one of integers, whose sums are rounded once.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import Call, Function, ShapeExpr
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, same_dim
from weft.relax.op.infer import VOID
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.passes import define_operator_pass
from weft.support.dtype import DataType
from weft.topi.moments import wide

_LAYOUTS: Final = {
    Op.get("relax.image.resize2d"): "NCHW",
    Op.get("relax.image.resize3d"): "NCDHW",
}
"""Operators -> the layout in which their columns lie along vectors."""
_SEPARABLE: Final = ("linear", "cubic")
_NOT_SEPARABLE: Final = "tf_crop_and_resize"
"""A position outside of the image has a value of its own, which would be resized with the rest."""


class _Splitter(PyExprMutator):
    def visit_call_(self, op: Call) -> RelaxExpr:
        call = super().visit_call_(op)
        return self._split(call) if isinstance(call, Call) and _is_to_split(call) else call

    def _split(self, call: Call) -> Call:
        """The resize of the columns, of the emitted resize of the other axes."""
        data, size = call.args
        info, extents = expect(data.struct_info, TensorStructInfo), expect(size, ShapeExpr).values
        columns = (tensor_dims(info) or [])[-1]
        # Sums of short floats are rounded at the end only.
        attrs = {**call.attrs, "out_dtype": wide(info.dtype)}
        others = call.with_(args=[data, ShapeExpr([*extents[:-1], columns])], attrs=attrs)
        attrs = {**call.attrs, "out_dtype": _result_type(call, info)}
        return call.with_(args=[self.builder_.emit(others), size], attrs=attrs)


def _result_type(call: Call, info: TensorStructInfo) -> DataType:
    given = call.attrs["out_dtype"]
    return info.dtype if given == VOID else DataType(given)


def _is_to_split(call: Call) -> bool:
    """Whether a call is a separable resize whose columns' neighbours only the run tells."""
    layout = _LAYOUTS.get(call.op)
    if layout is None or call.attrs["layout"] != layout:
        return False
    info, size = expect(call.args[0].struct_info, TensorStructInfo), call.args[1]
    dims = tensor_dims(info)
    if dims is None or not isinstance(size, ShapeExpr) or not _is_separable(call, info):
        return False
    *others, columns = list(zip(dims[2:], size.values, strict=True))
    is_known = all(constant_value(extent) is not None for extent in columns)
    is_resized = not same_dim(*columns) and not all(same_dim(*pair) for pair in others)
    return is_resized and not is_known


def _is_separable(call: Call, info: TensorStructInfo) -> bool:
    """Whether a pixel is a weighted sum, of floats, by rows and columns."""
    return (
        call.attrs["method"] in _SEPARABLE
        and call.attrs["coordinate_transformation_mode"] != _NOT_SEPARABLE
        and info.dtype.is_float
        and _result_type(call, info).is_float
    )


def split_resizes(func: Function) -> Function:
    """Split the resizes of a graph function whose columns only the run tells."""
    if not any(call.op in _LAYOUTS for call in collect(func.body, Call)):
        return func
    return expect(_Splitter().visit_expr(func), Function)


SplitResizes = define_operator_pass("SplitResizes", split_resizes)
