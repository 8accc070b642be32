"""transform_layout and set_axis_separator change the layout of a buffer and all its accesses.

A layout is an injective map of indices. If its image is not all of the new shape there is padding.
That is refused without ``pad_value``; else the producer writes it, or it is assumed of an input
(``layout_padding``). Beyond TVM 0.20, refused is what TVM would transform in part: pointers into
the buffer, views of it, strides, maps that put two elements at one place.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from weft.arith.analyzer import Analyzer
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, collect, substitute
from weft.ir.json_text import load_json, save_json
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, TVMError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import BinaryExpr, Var, is_call
from weft.tir.index_map import IndexMap
from weft.tir.schedule import checks, rewrite
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure
from weft.tir.schedule.primitive.buffer.buffer_argument import BufferPlace, buffer_position
from weft.tir.schedule.primitive.buffer.buffer_definition import (
    axis_text,
    check_rewritable,
    defining_block,
    replace_buffer,
)
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.primitive.cache.reindex import is_injective
from weft.tir.schedule.primitive.layout.layout_padding import plan_padding
from weft.tir.schedule.primitive.layout.layout_rewrite import LayoutPlan, rewrite_layout
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block


class LayoutMapError(ScheduleFailure):
    """The map does not fit the buffer, or puts two elements at one place."""


class IntroducesPaddingError(ScheduleFailure):
    """The new shape has more elements than the old one, and no value for them is given."""

    hint = "give pad_value, or assume_injective_transform=True to leave the padding as it is"


class PadValueError(ScheduleFailure):
    """The pad value is not one value of the buffer's type that depends on its indices alone."""


class AxisSeparatorError(ScheduleFailure):
    """The axis separators do not fit the buffer."""


# ---- arguments


def default_index_dtype(block: Block) -> str:
    """The type of the indices of a block: that of its axes, else of what it accesses."""
    for axis in block.iter_vars:
        return str(axis.var.dtype)
    for region in (*block.reads, *block.writes):
        for rng in region.region:
            return str(rng.min.dtype)
    return "int64"


def buffer_at(block: Block, place: tuple[str, int]) -> Buffer | None:
    """The buffer at a place among the reads or writes; None if there is no such place."""
    kind, index = place
    regions = block.reads if kind == "read" else block.writes
    return regions[index].buffer if 0 <= index < len(regions) else None


def with_known(schedule: Session, index_map: IndexMap) -> IndexMap:
    """The map with sampled numbers in place of their variables."""
    known = {
        rv: IntImm(rv.dtype, number)
        for rv, number in schedule._symbols.items()
        if isinstance(rv, Var) and isinstance(number, int)
    }
    if not known:
        return index_map
    finals = [substitute(index, known) for index in index_map.final_indices]
    return IndexMap(index_map.initial_indices, finals, index_map.inverse_index_map)


PadValue: TypeAlias = float | PrimExpr | IndexMap | Callable[..., object]
"""What padding holds: a value, or a function of the indices in the new layout."""


def _layout_arguments(self: Session, arguments: dict[str, Any]) -> None:
    block = self.get(arguments["block"])
    place = buffer_position(self, arguments["block"], arguments["buffer"])
    arguments["buffer"] = place
    buffer = buffer_at(block, place)
    dtype = default_index_dtype(block)
    index_map = arguments["index_map"]
    if not isinstance(index_map, IndexMap):
        ndim = None if buffer is None else len(buffer.shape)
        index_map = arguments["index_map"] = IndexMap.from_func(index_map, ndim, index_dtype=dtype)
    if arguments["pad_value"] is not None and buffer is not None:
        arguments["pad_value"] = _pad_map(arguments["pad_value"], buffer, index_map, dtype)


def _pad_map(given: Any, buffer: Buffer, index_map: IndexMap, dtype: str) -> IndexMap:
    """The pad value as a map from the new indices; plain numbers get the buffer's type."""
    if isinstance(given, IndexMap):
        return given
    function = given
    if isinstance(given, PrimExpr) or not callable(given):
        value = _typed(given, buffer, exact=True)

        def function(*indices: Any) -> Any:
            del indices
            return value

    @functools.wraps(function)
    def typed(*indices: Any) -> Any:
        result = function(*indices)
        items = result if isinstance(result, (list, tuple)) else [result]
        return [_typed(item, buffer, exact=False) for item in items]

    return IndexMap.from_func(typed, len(index_map.final_indices), index_dtype=dtype)


def _typed(value: object, buffer: Buffer, *, exact: bool) -> object:
    """A plain number as a constant of the buffer's type; ``exact``: an int is no float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    dtype = buffer.dtype
    if "int" in str(dtype) and isinstance(value, int):
        return IntImm(dtype, value)
    if dtype.is_float and (isinstance(value, float) or not exact):
        return FloatImm(dtype, float(value))
    return op.const(value)


# ---- transform_layout


def transform_layout(
    self: Session,
    block: BlockRV | str,
    buffer: BufferPlace,
    index_map: IndexMap | Callable[..., object],
    pad_value: PadValue | None = None,
    *,
    assume_injective_transform: bool = False,
) -> None:
    """Store a buffer in another layout: the element at ``i`` comes to lie at ``index_map(i)``.

    All blocks that use the buffer change their indices; the block named here also changes its axes
    where that is possible.

    Args:
        block: a block that uses the buffer, or its name.
        buffer: ``("read", i)`` or ``("write", i)`` for a place among the block's accesses, a name,
            or a Buffer.
        index_map: from old indices to new ones: a function, or an IndexMap. A function may also
            return ``IndexMap.AXIS_SEPARATOR`` between them (see ``set_axis_separator``).
        pad_value: what the new elements hold that no old one comes to: a number, an expression, a
            function of the new indices or an IndexMap. With ``T.undef()`` nothing is said of them.
        assume_injective_transform: trust that no two elements come to the same place.

    Raises:
        LayoutMapError: two elements would come to the same place, or the map does not fit.
        IntroducesPaddingError: the new layout has more elements, and no ``pad_value`` is given.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 16, j % 16))
    >>> sch.get(sch.get_block("B")).writes[0].buffer.shape
    [8, 2, 16]
    """
    separators: list[int] = []
    if callable(index_map) and not isinstance(index_map, IndexMap):
        block = self._block_named(block)
        stmt = self.get(block)
        target = buffer_at(stmt, buffer_position(self, block, buffer))
        index_map, separators = IndexMap.from_func_with_separators(
            index_map,
            None if target is None else len(target.shape),
            index_dtype=default_index_dtype(stmt),
        )
    if separators:
        block = self._block_named(block)
        buffer = buffer_position(self, block, buffer)
        check_separators(self.state, self._sref(block), separators, len(index_map.final_indices))
    _transform_layout(
        self,
        block,
        buffer,
        index_map,
        pad_value,
        assume_injective_transform=assume_injective_transform,
    )
    if separators:
        set_axis_separator(self, block, buffer, separators)


def _with_primitive_name(function: Any) -> Any:
    function.__name__ = "transform_layout"
    return function


def _pad_to_json(value: object) -> object:
    return None if value is None else save_json(value)


def _pad_from_json(value: object) -> object:
    return load_json(value) if isinstance(value, str) else value


@primitive(
    "TransformLayout", "block index_map", canonical=_layout_arguments,
    attr_codec={"pad_value": (_pad_to_json, _pad_from_json)},
)  # fmt: skip
@_with_primitive_name
def _transform_layout(
    self: Session,
    block: BlockRV | str,
    buffer: Any,
    index_map: Any,
    pad_value: Any = None,
    *,
    assume_injective_transform: bool = False,
) -> None:
    """The recorded part of ``transform_layout``: all but the axis separators."""
    state, sref = self.state, self._sref(block)
    old, _ = checks.nth_access(state, sref, buffer[1], write=buffer[0] == "write")
    scope = defining_block(state, sref, old)
    check_rewritable(state, scope, old)
    layout = legalized(state, sref, with_known(self, index_map), old)
    _check_pad_value(state, sref, old, layout, pad_value)
    analyzer = Analyzer()
    for extent in collect(list(old.shape), Var):
        analyzer.bind_nonnegative(extent)
    inverse, padding = None, op.const(False)
    if not assume_injective_transform:
        inverse, padding = _inverse(state, sref, old, layout, analyzer)
    padded = not op.is_const_int(padding, 0)
    if padded and pad_value is None:
        raise _introduces_padding(state, sref, old, layout, padding)
    new = _new_buffer(state, sref, old, layout, analyzer)
    plan = LayoutPlan()
    assert isinstance(scope.stmt, Block)
    if padded and inverse is not None and not _is_undef(pad_value):
        plan = plan_padding(scope.stmt, old, new, inverse, padding, pad_value)
    new_scope, reuse = rewrite_layout(scope.stmt, old, new, layout, plan)
    replace_buffer(state, scope, old, new, new_scope, reuse)


def _is_undef(pad_value: IndexMap | None) -> bool:
    value = None if pad_value is None else pad_value.final_indices[0]
    return is_call(value, "undef")


def _inverse(
    state: ScheduleState, sref: StmtSRef, buffer: Buffer, layout: IndexMap, analyzer: Analyzer
) -> tuple[IndexMap, PrimExpr]:
    """The inverse of the layout and where it has padding; an error if it has none."""
    ranges = [Range(dim) for dim in buffer.shape]
    shown = f"{layout.to_python_string()} over the shape {axis_text(buffer.shape)} of {buffer.name}"
    hint = "if no two elements get one place, say so: assume_injective_transform=True"
    if layout.inverse_index_map is None:
        domains = dict(zip(layout.initial_indices, ranges, strict=True))
        if not is_injective(layout.final_indices, domains):
            raise LayoutMapError(state, f"two elements may get one place: {shown}", sref, hint)
    try:
        return layout.non_surjective_inverse(ranges)
    except TVMError as error:
        raise LayoutMapError(state, f"{shown} has no inverse: {error}", sref, hint) from None


def _introduces_padding(
    state: ScheduleState, sref: StmtSRef, buffer: Buffer, layout: IndexMap, padding: PrimExpr
) -> IntroducesPaddingError:
    return IntroducesPaddingError(
        state,
        f"{layout.to_python_string()} makes {buffer.name} of shape {axis_text(buffer.shape)} one "
        f"of shape {axis_text(layout.map_shape(buffer.shape))}, with padding where {padding}",
        sref,
    )


def _new_buffer(
    state: ScheduleState, sref: StmtSRef, old: Buffer, layout: IndexMap, analyzer: Analyzer
) -> Buffer:
    try:
        shape = layout.map_shape(old.shape, analyzer=analyzer)
    except TVMError as error:
        raise LayoutMapError(state, str(error), sref) from None
    if old.axis_separators and len(shape) != len(old.shape):
        raise AxisSeparatorError(
            state,
            f"{old.name} has axis separators {axis_text(old.axis_separators)} between its "
            f"{len(old.shape)} axes; the layout has {len(shape)}",
            sref,
            "call set_axis_separator with [] first",
        )
    if not shape:
        raise LayoutMapError(state, f"the layout leaves no axis of {old.name}", sref)
    return old.with_(shape=shape)


class _Legalize(Mutator):
    """Gives the indices of a map another integer type."""

    def __init__(self, mapping: Mapping[Var, Var], old: DataType, new: DataType | str) -> None:
        self.mapping, self.old, self.new = mapping, old, new

    def visit_Var(self, node: Var) -> PrimExpr:
        replacement = self.mapping.get(node)
        if replacement is not None:
            return replacement
        return op.cast(self.new, node) if node.dtype == self.old else node

    def visit_IntImm(self, node: IntImm) -> IntImm:
        return IntImm(self.new, node.value) if node.dtype == self.old else node

    def visit_BinaryExpr(self, node: BinaryExpr) -> BinaryExpr:
        return type(node)(self.visit(node.a), self.visit(node.b))

    visit_CompareExpr = visit_BinaryExpr


def legalized(
    state: ScheduleState, sref: StmtSRef, index_map: IndexMap, buffer: Buffer
) -> IndexMap:
    """The map with indices of the type of the buffer's shape."""
    if len(index_map.initial_indices) != len(buffer.shape):
        raise LayoutMapError(
            state,
            f"{buffer.name} has {len(buffer.shape)} axes, the map takes "
            f"{len(index_map.initial_indices)}: {index_map.to_python_string()}",
            sref,
        )
    return with_dtype(index_map, buffer.shape[0].dtype) if buffer.shape else index_map


def with_dtype(index_map: IndexMap, dtype: DataType | str) -> IndexMap:
    """The map with indices of an integer type."""
    indices = (*index_map.initial_indices, *index_map.final_indices)
    if all(index.dtype == dtype for index in indices):
        return index_map
    initial = [Var(var.name, dtype) for var in index_map.initial_indices]
    mapping = dict(zip(index_map.initial_indices, initial, strict=True))
    old = index_map.initial_indices[0].dtype
    work = _Legalize(mapping, old, dtype)
    final = [op.cast(dtype, work.visit(index)) for index in index_map.final_indices]
    inverse = index_map.inverse_index_map
    return IndexMap(initial, final, None if inverse is None else with_dtype(inverse, dtype))


def _check_pad_value(
    state: ScheduleState, sref: StmtSRef, buffer: Buffer, layout: IndexMap, pad: IndexMap | None
) -> None:
    if pad is None:
        return
    if len(pad.final_indices) != 1:
        raise PadValueError(
            state, f"pad_value gives {len(pad.final_indices)} values, expected 1", sref
        )
    if len(pad.initial_indices) != len(layout.final_indices):
        raise PadValueError(
            state,
            f"pad_value takes {len(pad.initial_indices)} indices, the new layout has "
            f"{len(layout.final_indices)}",
            sref,
        )
    if _is_undef(pad):
        return
    value = pad.final_indices[0]
    if value.dtype != buffer.dtype:
        raise PadValueError(
            state, f"pad_value {value} is a {value.dtype}, {buffer.name} holds {buffer.dtype}", sref
        )
    for load in collect(value, BufferLoad):
        if load.buffer is not buffer:
            raise PadValueError(
                state, f"pad_value reads {load.buffer.name}; it may read {buffer.name} alone", sref
            )


# ---- set_axis_separator


def _separator_arguments(self: Session, arguments: dict[str, Any]) -> None:
    arguments["buffer"] = buffer_position(self, arguments["block"], arguments["buffer"])
    given = arguments["axis_separators"]
    given = [] if given is None else given
    if isinstance(given, (str, int)) or any(
        isinstance(getattr(item, "value", item), bool)
        or not isinstance(getattr(item, "value", item), int)
        for item in given
    ):
        raise IRTypeError(f"set_axis_separator: expected a list of ints, got {given!r}")
    arguments["axis_separators"] = [int(getattr(item, "value", item)) for item in given]


@primitive("SetAxisSeparator", "block", canonical=_separator_arguments)
def set_axis_separator(
    self: Session, block: BlockRV | str, buffer: Any, axis_separators: Sequence[int]
) -> None:
    """Set which axes of a buffer stay apart when it is flattened.

    Flattening makes one axis of all of them, or one of each group between separators.

    Args:
        block: a block that uses the buffer, or its name.
        buffer: ``("read", i)`` or ``("write", i)`` for a place among the block's accesses, a name,
            or a Buffer.
        axis_separators: the axes before which a new group begins; ``[]`` for one group.

    Raises:
        AxisSeparatorError: the numbers do not increase, or one is no axis of the buffer.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.set_axis_separator("B", ("write", 0), [1])
    >>> sch.get(sch.get_block("B")).writes[0].buffer.axis_separators
    [1]
    """
    state, sref = self.state, self._sref(block)
    old, _ = checks.nth_access(state, sref, buffer[1], write=buffer[0] == "write")
    scope = defining_block(state, sref, old)
    check_separators(state, sref, axis_separators, len(old.shape))
    assert isinstance(scope.stmt, Block)
    mapping = {old: old.with_(axis_separators=axis_separators)}
    pending = [old]
    for buffer_now in pending:
        for view in accesses(scope.stmt, buffer_now).matched:
            if len(view.shape) != len(old.shape):
                raise AxisSeparatorError(
                    state,
                    f"the view {view.name} of {old.name} has {len(view.shape)} axes, "
                    f"{old.name} has {len(old.shape)}",
                    sref,
                )
            mapping[view] = view.with_(axis_separators=axis_separators)
            pending.append(view)
    new_scope, reuse = rewrite.substitute(scope.stmt, mapping)
    assert isinstance(new_scope, Block)
    replace_buffer(state, scope, old, mapping[old], new_scope, reuse)


def check_separators(
    state: ScheduleState, sref: StmtSRef, separators: Sequence[int], ndim: int
) -> None:
    """Axis separators are increasing positions between axes."""
    ordered = all(a < b for a, b in itertools.pairwise(separators))
    if not ordered or any(not 0 <= item <= ndim for item in separators):
        raise AxisSeparatorError(
            state, f"expected increasing numbers between 0 and {ndim}, got {list(separators)}", sref
        )
