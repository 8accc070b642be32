"""Blocks as functions: what ``T.block``, ``T.axis``, ``T.reads``, ``T.where`` ... do.

Each adds to the innermost block that is being built. Parameters are TVM 0.20's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from weft.ir.expr import ExprLike, Range, RangeLike, as_prim_expr
from weft.script.ir_builder.base import IRBuilder, as_attributes
from weft.script.ir_builder.tir_frame import (
    BlockFrame,
    BlockInitFrame,
    ForFrame,
    RegionLike,
    as_buffer_region,
    last_block,
)
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.support.missing import MissingNameError
from weft.tir import op as tir_op
from weft.tir.access import extent_between
from weft.tir.buffer import BufferRegion
from weft.tir.expr import IterType, IterVar, Var


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """Open a block: a piece of computation that schedules move as a whole.

    The statements inside run once for each iteration of the loops around. Axes
    (``T.axis``), regions (``T.reads``, ``T.writes``), ``T.where``, ``T.init`` and
    ``T.block_attr`` stand at its head. Regions that are left out are found from the body.

    Args:
        name: by which ``Schedule.get_block`` finds the block.
        no_realize: make the bare ``Block`` node, whose axes are bound to nothing.

    >>> from weft.script import tir as T
    >>> @T.prim_func(private=True)
    ... def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             v_i = T.axis.spatial(8, i)
    ...             B[v_i] = A[v_i] * T.float32(2)
    >>> len(double.body.block.body.body.block.reads)
    1
    """
    if not isinstance(name, str):
        raise IRTypeError(f"T.block: expected a name, got {name!r}")
    return BlockFrame(name, no_realize)


def init() -> BlockInitFrame:
    """Open the part of a reduction block that runs first: it stores what the reduction starts
    from.

    It runs before the first iteration of the block's reduction axes, for each value of the
    others.

    >>> from weft.script import tir as T
    >>> @T.prim_func(private=True)
    ... def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    ...     for i in range(8):
    ...         with T.block("B"):
    ...             v_i = T.axis.reduce(8, i)
    ...             with T.init():
    ...                 B[0] = T.float32(0)
    ...             B[0] = B[0] + A[v_i]
    """
    return BlockInitFrame()


def where(predicate: ExprLike) -> None:
    """Run the block only in iterations where ``predicate`` holds.

    A loop of 16 iterations over 10 elements: ``T.where(i < 10)``.
    """
    frame = last_block("T.where")
    if frame.predicate is not None:
        raise IRValueError(f"block {frame.name!r} has two T.where")
    condition = as_prim_expr(predicate)
    if condition.dtype.is_handle:
        raise IRTypeError(f"T.where: expected a condition, got {predicate!r}")
    if not condition.dtype.is_bool:
        condition = tir_op.cast("bool", condition)
    frame.predicate = condition


Regions = RegionLike | list[RegionLike] | tuple[RegionLike, ...]


def _regions(items: Sequence[Regions]) -> list[BufferRegion]:
    flat: list[RegionLike] = []
    for item in items:
        flat.extend(item if isinstance(item, list | tuple) else [item])
    return [as_buffer_region(item) for item in flat]


def reads(*buffer_slices: Regions) -> None:
    """State the regions that the block reads: ``T.reads(A[v_i, 0:4], B[v_i])``.

    Args:
        buffer_slices: elements ``A[i]``, regions ``A[i:j]`` or whole buffers; lists of them.
    """
    frame = last_block("T.reads")
    if frame.reads is not None:
        raise IRValueError(f"block {frame.name!r} has two T.reads")
    frame.reads = _regions(buffer_slices)


def writes(*buffer_slices: Regions) -> None:
    """State the regions that the block writes: ``T.writes(C[v_i, 0:4])``.

    Args:
        buffer_slices: elements ``A[i]``, regions ``A[i:j]`` or whole buffers; lists of them.
    """
    frame = last_block("T.writes")
    if frame.writes is not None:
        raise IRValueError(f"block {frame.name!r} has two T.writes")
    frame.writes = _regions(buffer_slices)


def block_attr(attrs: Mapping[str, object]) -> None:
    """Set annotations of the block: ``T.block_attr({"schedule_rule": "matmul"})``."""
    frame = last_block("T.block_attr")
    if frame.annotations is not None:
        raise IRValueError(f"block {frame.name!r} has two T.block_attr")
    frame.annotations = as_attributes("T.block_attr", attrs)


class _Axes(type):
    """The class of ``axis``: a name that is not there is an error with the nearest names."""

    def __getattr__(cls, name: str) -> NoReturn:
        known = [item for item in vars(cls) if not item.startswith("_")]
        raise MissingNameError(f"there is no T.axis.{name}", name, lambda: known, "T.axis.")


class axis(metaclass=_Axes):  # noqa: N801 - written T.axis.spatial
    """The axes of a block: variables that are bound to the loops around, each with its kind.

    The kind says how the iterations may be ordered: those of a spatial axis in any order and at
    the same time, those of a reduction axis in any order, those of a scan axis only as they
    stand.
    """

    @staticmethod
    def spatial(
        dom: RangeLike | None = None, binding: ExprLike | None = None, dtype: str = "int32"
    ) -> Var:
        """Add an axis whose iterations are independent of each other (also ``T.axis.S``).

        Args:
            dom: its extent, or a pair (begin, end).
            binding: the expression of loop variables that gives its value.
            dtype: its type; the wider one of this and of the type of ``dom``.

        >>> from weft.script import tir as T
        >>> @T.prim_func(private=True)
        ... def copy(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
        ...     for i, j in T.grid(8, 4):
        ...         with T.block("B"):
        ...             v = T.axis.spatial(32, i * 4 + j)
        ...             B[v] = A[v]
        """
        return _axis(dom, binding, dtype, IterVar.DataPar)

    @staticmethod
    def reduce(
        dom: RangeLike | None = None, binding: ExprLike | None = None, dtype: str = "int32"
    ) -> Var:
        """Add an axis over which the block reduces: its iterations update one result.

        ``T.axis.R`` for short.

        Arguments as those of ``T.axis.spatial``.
        """
        return _axis(dom, binding, dtype, IterVar.CommReduce)

    @staticmethod
    def scan(
        dom: RangeLike | None = None, binding: ExprLike | None = None, dtype: str = "int32"
    ) -> Var:
        """Add an axis whose iterations have to run in order, as those of a prefix sum.

        Arguments as those of ``T.axis.spatial``.
        """
        return _axis(dom, binding, dtype, IterVar.Ordered)

    @staticmethod
    def opaque(
        dom: RangeLike | None = None, binding: ExprLike | None = None, dtype: str = "int32"
    ) -> Var:
        """Add an axis of which nothing is promised; schedules leave its loop as it is.

        Arguments as those of ``T.axis.spatial``.
        """
        return _axis(dom, binding, dtype, IterVar.Opaque)

    S = spatial
    R = reduce

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Var], dtype: str = "int32") -> Var | list[Var]:
        """Add an axis for each of several loop variables, with the range of its loop.

        Args:
            kinds: a letter for each axis, ``S`` for spatial and ``R`` for reduction.
            bindings: the loop variables, each of a loop around the block.
            dtype: as for ``T.axis.spatial``.

        Returns:
            The axes; of a single one itself.

        >>> from weft.script import tir as T
        >>> @T.prim_func(private=True)
        ... def matmul(
        ...     A: T.Buffer((4, 16), "float32"),
        ...     B: T.Buffer((16, 8), "float32"),
        ...     C: T.Buffer((4, 8), "float32"),
        ... ):
        ...     for i, j, k in T.grid(4, 8, 16):
        ...         with T.block("C"):
        ...             v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
        ...             with T.init():
        ...                 C[v_i, v_j] = T.float32(0)
        ...             C[v_i, v_j] += A[v_i, v_k] * B[v_k, v_j]
        """
        if not isinstance(kinds, str) or not isinstance(bindings, list | tuple):
            raise IRTypeError(
                "T.axis.remap: expected a letter for each loop variable and a list of these, such "
                f"as remap('SR', [i, k]), got {kinds!r} and {bindings!r}"
            )
        if len(kinds) != len(bindings):
            raise IRValueError(
                f"T.axis.remap: {len(kinds)} kinds ({kinds!r}) for {len(bindings)} loop variables"
            )
        axes = [_remap(kind, item, dtype) for kind, item in zip(kinds, bindings, strict=True)]
        return axes[0] if len(axes) == 1 else axes


def _remap(kind: str, binding: ExprLike, dtype: str) -> Var:
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


_KINDS: Final = {
    IterVar.DataPar: "spatial", IterVar.CommReduce: "reduce", IterVar.Ordered: "scan",
    IterVar.Opaque: "opaque",
}  # fmt: skip


def _axis(dom: RangeLike | None, binding: ExprLike | None, dtype: str, iter_type: IterType) -> Var:
    if dom is None or binding is None:
        kind = _KINDS[iter_type]
        actual = "neither" if dom is binding else f"{dom if binding is None else binding} alone"
        raise IRTypeError(
            f"T.axis.{kind}: expected the extent and what the axis is bound to, got {actual}; "
            f"write T.axis.{kind}(extent, i), where i is the variable of a loop around the block"
        )
    if isinstance(dom, list | tuple):
        if len(dom) != 2:
            raise IRValueError(f"T.axis: expected an extent or a pair, got {dom!r}")
        begin, end = as_prim_expr(dom[0]), as_prim_expr(dom[1])
        dom = Range.from_min_extent(begin, extent_between(begin, end))
    elif not isinstance(dom, Range):
        dom = Range(dom)
    value = as_prim_expr(binding)
    for part in (dom.min, dom.extent, value):
        if not part.dtype.is_integral or part.dtype.lanes != 1:
            raise IRTypeError(f"T.axis: expected integers, got {part} of type {part.dtype}")
    widths = [item.bits for item in (dom.min.dtype, dom.extent.dtype, DataType(dtype))]
    variable = Var("", f"{DataType(dtype).kind}{max(widths)}")
    iter_var = IterVar(dom, variable, iter_type, span=IRBuilder.current().span)
    frame = last_block("T.axis")
    frame.iter_vars.append(iter_var)
    frame.iter_values.append(value)
    return iter_var.var
