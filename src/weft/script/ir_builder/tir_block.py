"""Blocks as functions: what ``T.block``, ``T.axis``, ``T.reads``, ``T.where`` ... do.

Each adds to the innermost block under way. Parameters are TVM 0.20's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.expr import Range, as_prim_expr
from weft.script.ir_builder.base import IRBuilder
from weft.script.ir_builder.tir_frame import (
    BlockFrame,
    BlockInitFrame,
    ForFrame,
    as_buffer_region,
    extent_between,
    last_block,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op as tir_op
from weft.tir.expr import IterVar, Var
from weft.tir.stmt import BufferRegion


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """A block frame."""
    return BlockFrame(name, no_realize)


def init() -> BlockInitFrame:
    """The initial value of a reduction block."""
    return BlockInitFrame()


def where(predicate: Any) -> None:
    """Run the block only where ``predicate`` holds."""
    frame = last_block("T.where")
    if frame.predicate is not None:
        raise IRValueError(f"block {frame.name!r} has two T.where")
    condition = as_prim_expr(predicate)
    if not condition.dtype.is_bool:
        condition = tir_op.cast("bool", condition)
    frame.predicate = condition


def _regions(items: Sequence[Any]) -> list[BufferRegion]:
    flat: list[Any] = []
    for item in items:
        flat.extend(item if isinstance(item, list | tuple) else [item])
    return [as_buffer_region(item) for item in flat]


def reads(*buffer_slices: Any) -> None:
    """The regions that the block reads."""
    frame = last_block("T.reads")
    if frame.reads is not None:
        raise IRValueError(f"block {frame.name!r} has two T.reads")
    frame.reads = _regions(buffer_slices)


def writes(*buffer_slices: Any) -> None:
    """The regions that the block writes."""
    frame = last_block("T.writes")
    if frame.writes is not None:
        raise IRValueError(f"block {frame.name!r} has two T.writes")
    frame.writes = _regions(buffer_slices)


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Set annotations of the block."""
    frame = last_block("T.block_attr")
    if frame.annotations is not None:
        raise IRValueError(f"block {frame.name!r} has two T.block_attr")
    frame.annotations = {str(key): value for key, value in attrs.items()}


class axis:  # noqa: N801 - written T.axis.spatial
    """The axes of a block."""

    @staticmethod
    def spatial(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A data-parallel axis over ``dom`` (an extent or a pair) bound to ``binding``."""
        return _axis(dom, binding, dtype, IterVar.DataPar)

    @staticmethod
    def reduce(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """A reduction axis."""
        return _axis(dom, binding, dtype, IterVar.CommReduce)

    @staticmethod
    def scan(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """An ordered axis."""
        return _axis(dom, binding, dtype, IterVar.Ordered)

    @staticmethod
    def opaque(dom: Any, binding: Any, dtype: str = "int32") -> Var:
        """An axis of which nothing is known."""
        return _axis(dom, binding, dtype, IterVar.Opaque)

    S = spatial
    R = reduce

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
        """One axis a loop variable, of the kinds ``S`` and ``R``."""
        if len(kinds) != len(bindings):
            raise IRValueError(
                f"T.axis.remap: {len(kinds)} kinds ({kinds!r}) for {len(bindings)} loop variables"
            )
        axes = [_remap(kind, item, dtype) for kind, item in zip(kinds, bindings, strict=True)]
        return axes[0] if len(axes) == 1 else axes


def _remap(kind: str, binding: Any, dtype: str) -> Var:
    types = {"S": IterVar.DataPar, "R": IterVar.CommReduce}
    if kind not in types:
        raise IRValueError(f"T.axis.remap: expected kinds S and R, got {kind!r}")
    if not isinstance(binding, Var):
        raise IRTypeError(
            f"T.axis.remap: expected loop variables, got {type(binding).__name__}: {binding!r}"
        )
    for frame in reversed(IRBuilder.current().frames):
        if isinstance(frame, ForFrame):
            for var, dom in zip(frame.vars, frame.doms, strict=True):
                if var is binding:
                    return _axis(dom, binding, dtype, types[kind])
    raise IRValueError(f"T.axis.remap: {binding.name} is not a loop variable around the block")


def _axis(dom: Any, binding: Any, dtype: str, iter_type: Any) -> Var:
    if isinstance(dom, list | tuple):
        if len(dom) != 2:
            raise IRValueError(f"T.axis: expected an extent or a pair, got {dom!r}")
        begin, end = as_prim_expr(dom[0]), as_prim_expr(dom[1])
        dom = Range.from_min_extent(begin, extent_between(begin, end))
    elif not isinstance(dom, Range):
        dom = Range(dom)
    widths = [item.bits for item in (dom.min.dtype, dom.extent.dtype, DataType(dtype))]
    variable = Var("", f"{DataType(dtype).kind}{max(widths)}")
    iter_var = IterVar(dom, variable, iter_type, span=IRBuilder.current().span)
    frame = last_block("T.axis")
    frame.iter_vars.append(iter_var)
    frame.iter_values.append(as_prim_expr(binding))
    var: Var = iter_var.var
    return var
