"""Lowering of operators that move, index and create elements."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from weft import te, topi
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, PrimValue, ShapeExpr, Tuple, const
from weft.relax.ir.shape_arith import constant_value, product, same_dim
from weft.relax.op.base import call_dps_packed
from weft.relax.struct_info import ShapeStructInfo
from weft.relax.transform.legalize.rule import (
    Rule,
    dims,
    plain,
    scalar_or_tensor,
    table,
    tuple_fields,
    with_attrs,
    with_dims,
)
from weft.tir.index_map import IndexMap
from weft.tir.op import const as tir_const
from weft.tir.op import if_then_else, is_const_int


def _shape(call: Call, index: int) -> Any:
    """A shape argument whose dimensions are known, or None."""
    arg = call.args[index]
    if isinstance(arg, ShapeExpr):
        return arg
    info = arg.struct_info
    known = isinstance(info, ShapeStructInfo) and info.values is not None
    return ShapeExpr(info.values) if known else None


def _to_shape(te_func: Any, hint: str) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        shape = _shape(call, 1)
        if shape is None:
            return call
        return bb.call_te(te_func, call.args[0], shape, primfunc_name_hint=hint)

    return rule


def _reshape(bb: BlockBuilder, call: Call) -> Any:
    """A kernel; where the numbers of elements are not proved equal, a function that compares."""
    shape = _shape(call, 1)
    if shape is None:
        return call
    x = call.args[0]
    if not same_dim(product(dims(x)), product(shape.values)):
        return call_dps_packed("vm.builtin.reshape_into", Tuple([x]), call.struct_info)
    return bb.call_te(topi.reshape, x, shape, primfunc_name_hint="reshape")


def _flatten(bb: BlockBuilder, call: Call) -> Any:
    shape = ShapeExpr([product(dims(call.args[0]))])
    return bb.call_te(topi.reshape, call.args[0], shape)


def _concat(bb: BlockBuilder, call: Call) -> Any:
    axis = call.attrs["axis"] or 0
    fields = tuple_fields(bb, call.args[0])
    for index, field in enumerate(fields[1:], 1):
        wanted = dims(fields[0])
        wanted[axis] = dims(field)[axis]
        fields[index] = with_dims(bb, field, wanted, f"concat_{index}")
    return bb.call_te(topi.concatenate, fields, axis)


def _stack(bb: BlockBuilder, call: Call) -> Any:
    fields = tuple_fields(bb, call.args[0])
    for index, field in enumerate(fields[1:], 1):
        fields[index] = with_dims(bb, field, dims(fields[0]), f"stack_{index}")
    return bb.call_te(topi.stack, fields, call.attrs["axis"])


def te_expand_dims(x: Any, axes: list[int]) -> Any:
    """New axes of extent 1."""
    rank = len(x.shape) + len(axes)
    new = {axis % rank for axis in axes}
    old = iter(x.shape)
    shape = [1 if axis in new else next(old) for axis in range(rank)]
    return te.compute(
        shape,
        lambda *indices: x(*[item for axis, item in enumerate(indices) if axis not in new]),
        name="expand_dims",
    )


def te_repeat(x: Any, repeats: int, axis: int | None) -> Any:
    """Elements repeated, along the flat tensor if there is no axis."""
    if axis is None:
        x, axis = topi.reshape(x, [product(x.shape)]), 0
    return topi.repeat(x, repeats, axis)


def _split(bb: BlockBuilder, call: Call) -> Any:
    where, axis = call.attrs["indices_or_sections"], call.attrs["axis"]
    if where == 1 or where == ():
        return call.args[0]
    parts = where if isinstance(where, int) else list(where)
    if isinstance(where, int):
        extent = constant_value(dims(call.args[0])[axis])
        if extent is not None and extent % where:
            size = -(-extent // where)
            parts = [size * index for index in range(1, where)]
    made = bb.call_te(topi.split, call.args[0], parts, axis)
    return made


def _take(bb: BlockBuilder, call: Call) -> Any:
    x: Any = call.args[0]
    indices: Any = call.args[1]
    if isinstance(indices, PrimValue):
        indices = indices.value
    axis = call.attrs["axis"]
    mode = call.attrs["mode"]
    return bb.call_te(topi.take, x, indices, 0 if axis is None else axis, mode=mode)


def _strided_slice(bb: BlockBuilder, call: Call) -> Any:
    axes = _numbers(call.args[1])
    begin, end = _numbers(call.args[2]), _numbers(call.args[3])
    strides = _numbers(call.args[4]) if len(call.args) > 4 else None
    if axes is None or begin is None or end is None:
        return call
    return bb.call_te(
        topi.strided_slice, call.args[0], begin, end, strides, [int(axis) for axis in axes],
        slice_mode="end", assume_inbound=call.attrs["assume_inbound"],
    )  # fmt: skip


def _numbers(arg: Any) -> list[Any] | None:
    fields = getattr(arg, "fields", None)
    if fields is None or not all(isinstance(item, PrimValue) for item in fields):
        return None
    return [constant_value(item.value) if constant_value(item.value) is not None else item.value
            for item in fields]  # fmt: skip


def te_gather_nd(data: Any, indices: Any, batch_dims: int) -> Any:
    """topi takes the index vectors along the first axis."""
    rank = len(indices.shape)
    moved = topi.transpose(indices, [rank - 1, *range(rank - 1)])
    return topi.gather_nd(data, moved, batch_dims)


def _gather_elements(bb: BlockBuilder, call: Call) -> Any:
    return bb.call_te(topi.gather, call.args[0], call.attrs["axis"], call.args[1],
                      primfunc_name_hint="gather_elements")  # fmt: skip


def _full(hint: str, shape_index: int | None, value: Any) -> Rule:
    """A constant tensor: ``shape_index`` None takes the shape of the first argument."""

    def rule(bb: BlockBuilder, call: Call) -> Any:
        if shape_index is None:
            shape: Any = ShapeExpr(dims(call.args[0]))
        else:
            shape = _shape(call, shape_index)
        if shape is None:
            return call
        fill = scalar_or_tensor(call.args[1]) if value is None else value
        dtype = str(call.struct_info.dtype)
        return bb.call_te(te_full, shape, dtype, fill, primfunc_name_hint=hint)

    return rule


def te_full(shape: Any, dtype: str, value: Any) -> Any:
    """A tensor of one value: a number, or the element of a tensor without dimensions."""
    scalar = value() if hasattr(value, "op") and hasattr(value, "shape") else value
    return topi.full(shape, dtype, scalar.astype(dtype) if hasattr(scalar, "astype") else scalar)


def _arange(bb: BlockBuilder, call: Call) -> Any:
    operands: list[Any] = [_scalar(arg) for arg in call.args]
    values: list[Any] = [getattr(operand, "value", None) for operand in operands]
    dtype = str(call.attrs["dtype"])
    if all(value is not None for value in values):
        return const(np.arange(*values, dtype=dtype), dtype)
    return bb.call_te(topi.arange, *operands, dtype, primfunc_name_hint="arange")


def _triangle(upper: bool) -> Rule:
    def rule(bb: BlockBuilder, call: Call) -> Any:
        hint = "triu" if upper else "tril"
        k = _scalar(call.args[1])
        number = constant_value(k)
        k = k if number is None else number
        return bb.call_te(topi.trilu, call.args[0], k, upper, primfunc_name_hint=hint)

    return rule


def _scalar(arg: Any) -> Any:
    """The expression of a PrimValue."""
    return arg.value


def _eye(bb: BlockBuilder, call: Call) -> Any:
    operands = [_scalar(arg) for arg in call.args]
    return bb.call_te(topi.eye, *operands, str(call.attrs["dtype"]), primfunc_name_hint="eye")


def _hamming_window(bb: BlockBuilder, call: Call) -> Any:
    operands = [_scalar(arg) for arg in call.args]
    dtype = str(call.attrs["dtype"])
    return bb.call_te(topi.hamming_window, *operands, dtype, primfunc_name_hint="hamming_window")


def _eye_like(bb: BlockBuilder, call: Call) -> Any:
    rows, columns = dims(call.args[0])
    dtype = str(call.struct_info.dtype)
    return bb.call_te(topi.eye, rows, columns, _scalar(call.args[1]), dtype,
                      primfunc_name_hint="eye_like")  # fmt: skip


def _one_hot(bb: BlockBuilder, call: Call) -> Any:
    on_value, off_value = (scalar_or_tensor(arg) for arg in call.args[1:3])
    for value in (on_value, off_value):
        if value is call.args[1] or value is call.args[2]:
            inner = getattr(value, "value", None)
            if inner is None:
                return call
    values = [getattr(v, "value", v) if isinstance(v, PrimValue) else v
              for v in (on_value, off_value)]  # fmt: skip
    return bb.call_te(
        topi.one_hot, call.args[0], *values, call.attrs["depth"], call.attrs["axis"],
        str(call.struct_info.dtype), primfunc_name_hint="one_hot",
    )  # fmt: skip


def _squeeze(bb: BlockBuilder, call: Call) -> Any:
    axis = plain(call.attrs["axis"])
    return bb.call_te(topi.squeeze, call.args[0], axis, primfunc_name_hint="squeeze")


def te_layout_transform(x: Any, index_map: IndexMap, pad_value: Any) -> Any:
    """Each element of the result is read where the inverse map says, or is padding."""
    inverse, padding = index_map.non_surjective_inverse(x.shape)
    where = IndexMap(inverse.initial_indices, [padding])
    fill = tir_const(0, str(x.dtype)) if pad_value is None else pad_value

    def moved(*indices: Any) -> Any:
        value = x(*inverse.map_indices(indices))
        (is_padding,) = where.map_indices(indices)
        return value if is_const_int(is_padding, 0) else if_then_else(is_padding, fill, value)

    return te.compute(index_map.map_shape(x.shape), moved, name="layout_transform")


def _layout_transform(bb: BlockBuilder, call: Call) -> Any:
    if call.attrs["axis_separators"] or call.attrs["input_axis_separators"]:
        return call
    value = call.attrs["pad_value"]
    fill = value.value if isinstance(value, PrimValue) else value
    hint = "te_layout_transform" if fill is None else "te_layout_transform_with_pad"
    made = partial(te_layout_transform, index_map=call.attrs["index_map"], pad_value=fill)
    return bb.call_te(made, call.args[0], primfunc_name_hint=hint)


TABLE = table(
    {
        "broadcast_to": _to_shape(topi.broadcast_to, "broadcast_to"),
        "reshape": _reshape,
        "flatten": _flatten,
        "concat": _concat,
        "stack": _stack,
        "expand_dims": with_attrs(te_expand_dims, "axis", hint="expand_dims"),
        "permute_dims": with_attrs(topi.transpose, "axes", hint="transpose"),
        "split": _split,
        "squeeze": _squeeze,
        "repeat": with_attrs(te_repeat, "repeats", "axis", hint="repeat"),
        "tile": with_attrs(topi.tile, "repeats"),
        "flip": with_attrs(topi.flip, "axis"),
        "gather_elements": _gather_elements,
        "gather_nd": with_attrs(te_gather_nd, "batch_dims", hint="gather_nd"),
        "layout_transform": _layout_transform,
        "one_hot": _one_hot,
        "take": _take,
        "strided_slice": _strided_slice,
        "full": _full("full", 0, None),
        "full_like": _full("full", None, None),
        "ones": _full("ones", 0, 1),
        "ones_like": _full("ones", None, 1),
        "zeros": _full("zeros", 0, 0),
        "zeros_like": _full("zeros", None, 0),
        "arange": _arange,
        "eye": _eye,
        "eye_like": _eye_like,
        "hamming_window": _hamming_window,
        "tril": _triangle(upper=False),
        "triu": _triangle(upper=True),
    }
)
