"""Statements of TensorIR, down to the schedulable block."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from weft.ir.attrs import Attrs
from weft.ir.expr import ExprLike, IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.node import Array, Node, field, node, with_slots
from weft.ir.type import PointerType, PrimType
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir import array_json  # noqa: F401 - teaches the JSON of programs NDArrays
from weft.tir.buffer import Buffer, BufferRegion, check_rank
from weft.tir.expr import IterVar, Var
from weft.tir.op import extent_between, register_statements


@with_slots
class Stmt(Node):
    """The base of statements."""


class ForKind(IntEnum):
    """How a loop runs; the numbers are TVM's."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@node
class LetStmt(Stmt):
    """``body`` with ``var`` bound to ``value``."""

    var: Var = field(defines=True)
    value: PrimExpr
    body: Stmt
    STRUCTURE = (("value", False), ("var", True), ("body", False))


def _as_truth_value(condition: PrimExpr) -> PrimExpr:
    """A condition as a value of type bool: a number holds unless it is 0, as in Python."""
    if condition.dtype.is_bool:
        return condition
    value: PrimExpr = slots.operators.get().cast(DataType("bool"), condition)
    return value


@node
class AssertStmt(Stmt):
    """Stop with ``message`` unless ``condition``; then ``body``."""

    condition: PrimExpr
    message: PrimExpr
    body: Stmt

    def _check_(self) -> None:
        self.condition = _as_truth_value(self.condition)


@node
class For(Stmt):
    """Run ``body`` with ``loop_var`` from ``min`` over ``extent`` values."""

    loop_var: Var = field(defines=True)
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: Attrs = field(default=None)

    STRUCTURE = (
        ("min", False), ("extent", False), ("loop_var", True), ("kind", False),
        ("thread_binding", True), ("annotations", False), ("body", False),
    )  # fmt: skip

    def _check_(self) -> None:
        try:
            self.kind = ForKind(self.kind)
        except ValueError:
            raise IRValueError(
                f"For: expected a kind such as tir.ForKind.SERIAL, got {self.kind!r}"
            ) from None
        if not isinstance(self.loop_var, Var):
            raise wrong_type("For: expected a Var", self.loop_var)
        for name in ("min", "extent"):
            bound = getattr(self, name)
            if not bound.dtype.is_integral or bound.dtype.lanes != 1:
                raise IRTypeError(f"For: {name}: expected an integer, got {bound.dtype}: {bound!r}")
            if bound.dtype is not self.loop_var.dtype:
                setattr(self, name, slots.operators.get().cast(self.loop_var.dtype, bound))

    @property
    def domain(self) -> Range:
        """The range of the loop's variable."""
        return Range.from_min_extent(self.min, self.extent)


@node
class While(Stmt):
    """Run ``body`` while ``condition``."""

    condition: PrimExpr
    body: Stmt

    def _check_(self) -> None:
        self.condition = _as_truth_value(self.condition)


@node
class BufferStore(Stmt):
    """Store ``value`` into a buffer at ``indices``; the last index may be a vector."""

    buffer: Buffer
    value: PrimExpr
    indices: Array[PrimExpr]
    predicate: PrimExpr | None = None

    def _check_(self) -> None:
        check_rank(self.buffer, len(self.indices))
        lanes = self.indices[-1].dtype.lanes if self.indices else 1
        if self.value.dtype.element is not self.buffer.dtype.element:
            raise IRTypeError(
                f"BufferStore: {self.buffer.name} holds {self.buffer.dtype}, the value is "
                f"{self.value.dtype}"
            )
        if self.value.dtype.lanes != lanes * self.buffer.dtype.lanes:
            raise IRTypeError(
                f"BufferStore: {lanes * self.buffer.dtype.lanes} lanes are addressed in "
                f"{self.buffer.name}, the value has {self.value.dtype.lanes}"
            )


@node
class BufferRealize(Stmt):
    """Memory for a region of a buffer during ``body`` (older form of block allocation)."""

    buffer: Buffer = field(defines=True)
    bounds: Array[Range]
    condition: PrimExpr
    body: Stmt


@node
class Allocate(Stmt):
    """Memory of ``extents`` elements at ``buffer_var`` during ``body``, if ``condition``."""

    buffer_var: Var = field(defines=True)
    dtype: DataType
    extents: Array[PrimExpr]
    condition: PrimExpr
    body: Stmt
    annotations: Attrs = field(default=None)

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)


@node
class AllocateConst(Stmt):
    """Constant ``data`` (an NDArray) at ``buffer_var`` during ``body``."""

    buffer_var: Var = field(defines=True)
    dtype: DataType
    extents: Array[PrimExpr]
    data: Any = field(visit=False, stored="NDArray")
    body: Stmt
    annotations: Attrs = field(default=None)

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)


@node
class DeclBuffer(Stmt):
    """A view ``buffer`` of existing memory, named during ``body``."""

    buffer: Buffer = field(defines=True)
    body: Stmt


@node
class AttrStmt(Stmt):
    """``body`` under the attribute ``attr_key`` of ``node`` with ``value``."""

    node: Any = field(stored="Node | str | int | float | None")
    attr_key: str
    value: PrimExpr
    body: Stmt


@node
class SeqStmt(Stmt):
    """Statements one after the other; never nested in each other, at least two."""

    seq: Array[Stmt]

    def _check_(self) -> None:
        for item in self.seq:
            if type(item) is SeqStmt:
                self.seq = Array(stmt_list(seq(*self.seq)))
                return

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)


def seq(*statements: Any) -> Stmt:
    """One statement from several: nested sequences are flattened, a single one is itself."""
    flat: list[Stmt] = []
    for item in statements:
        if isinstance(item, (list, tuple)):
            flat.extend(stmt_list(seq(*item)) if item else ())
        elif isinstance(item, SeqStmt):
            flat.extend(item.seq)
        elif item is not None:
            flat.append(item)
    if len(flat) == 1:
        return flat[0]
    return SeqStmt(flat) if flat else Evaluate(0)


def stmt_seq(*args: object) -> Stmt:
    """TVM's name of ``seq``; expressions are evaluated."""
    return seq(*[Evaluate(item) if isinstance(item, PrimExpr) else item for item in args])


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, or the one statement."""
    return list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]


@node
class Evaluate(Stmt):
    """Evaluate ``value`` for its effect."""

    value: PrimExpr


@node
class IfThenElse(Stmt):
    """``then_case`` if ``condition``, else ``else_case`` if there is one."""

    condition: PrimExpr
    then_case: Stmt
    else_case: Stmt | None = None

    def _check_(self) -> None:
        self.condition = _as_truth_value(self.condition)


@node
class MatchBufferRegion(Node):
    """``buffer`` as another view of a region, inside a block."""

    buffer: Buffer = field(defines=True)
    source: BufferRegion
    STRUCTURE = (("source", False), ("buffer", True))


@node
class Block(Stmt):
    """The unit of computation that schedules move: axes, regions read and written, init, body.

    Structural equality ignores its name.
    """

    iter_vars: Array[IterVar] = field(defines=True)
    reads: Array[BufferRegion]
    writes: Array[BufferRegion]
    name_hint: str
    body: Stmt
    init: Stmt | None = None
    alloc_buffers: Array[Buffer] = field(default=(), defines=True)
    match_buffers: Array[MatchBufferRegion] = field(default=())
    annotations: Attrs = field(default=None)

    STRUCTURE = (
        ("iter_vars", True), ("alloc_buffers", True), ("match_buffers", False),
        ("annotations", False), ("reads", False), ("writes", False),
        ("init", False), ("body", False),
    )  # fmt: skip


@node
class BlockRealize(Stmt):
    """A block with its axes bound to ``iter_values``; it runs if ``predicate`` holds."""

    iter_values: Array[PrimExpr]
    predicate: PrimExpr
    block: Block

    def _check_(self) -> None:
        if len(self.iter_values) != len(self.block.iter_vars):
            raise IRTypeError(
                f"BlockRealize: block {self.block.name_hint} has {len(self.block.iter_vars)} "
                f"axes, got {len(self.iter_values)} values"
            )


def make_region(buffer: Buffer, indices: Sequence[slice | ExprLike]) -> BufferRegion:
    """The region of ``buffer[indices]``, where each index is a slice or a single position."""
    ranges = []
    for axis, index in enumerate(indices):
        if isinstance(index, slice):
            start = 0 if index.start is None else index.start
            stop = buffer.shape[axis] if index.stop is None else index.stop
            begin = as_prim_expr(start)
            ranges.append(Range.from_min_extent(begin, extent_between(begin, stop)))
        else:
            position = as_prim_expr(index)
            ranges.append(Range.from_min_extent(position, IntImm(position.dtype, 1)))
    return BufferRegion(buffer, ranges)


register_statements(store=BufferStore, region=make_region)


def pointer_type(dtype: str, scope: str = "global") -> PointerType:
    """The type of a pointer to ``dtype`` in a storage scope; bool is stored in bytes."""
    stored = DataType("int8") if DataType(dtype).is_bool else DataType(dtype)
    return PointerType(PrimType(stored), scope)
