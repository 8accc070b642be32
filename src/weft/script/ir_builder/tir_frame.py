"""The frames of TensorIR: functions, blocks, loops and the statements that enclose others.

Each frame collects statements; leaving it makes one node and adds it to the frame around.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from weft.ir.attrs import as_attrs
from weft.ir.expr import ExprLike, IntImm, PrimExpr, Range, StringImm, as_prim_expr
from weft.ir.node import Array, Node
from weft.ir.type import Type
from weft.runtime.ndarray import NDArray
from weft.script.ir_builder.base import NAMERS, IRBuilder, IRBuilderFrame
from weft.script.ir_builder.completion import DETECT, complete
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import IterVar, Ramp, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Stmt,
    While,
    seq,
)


def name_var(var: Var, name: str) -> None:
    """Name a variable that has no name yet."""
    if not var.name:
        var.name = name


def name_buffer(buffer: Buffer, name: str) -> None:
    """Name a buffer that has no name yet, and with it its pointer and symbolic strides."""
    if buffer.name:
        return
    buffer.name = name
    name_var(buffer.data, name)
    for index, stride in enumerate(buffer.strides):
        if isinstance(stride, Var):
            name_var(stride, f"{name}_s{index}")
    if isinstance(buffer.elem_offset, Var):
        name_var(buffer.elem_offset, f"{name}_elem_offset")


NAMERS[Buffer] = name_buffer
NAMERS[IterVar] = lambda iter_var, name: name_var(iter_var.var, name)
NAMERS[Var] = name_var


class TIRFrame(IRBuilderFrame):
    """A frame that collects statements."""

    def __init__(self) -> None:
        super().__init__()
        self.stmts: list[Stmt] = []

    def body(self) -> Stmt:
        """The collected statements as one."""
        return seq(*self.stmts)

    def emit(self, stmt: Stmt) -> None:
        """Give ``stmt`` the frame's place in the source and add it to the frame around."""
        stmt.span = self.span
        add_statement(stmt)


def add_statement(stmt: Stmt) -> None:
    """Add a statement to the innermost frame."""
    builder = IRBuilder.current()
    if stmt.span is None:
        stmt.span = builder.span
    if not builder.frames:
        builder.finish(stmt)
        return
    frame = builder.frames[-1]
    if not isinstance(frame, TIRFrame):
        raise IRValueError(f"a TensorIR statement cannot stand in a {type(frame).__name__}")
    frame.stmts.append(stmt)


def find_function(what: str) -> PrimFuncFrame:
    """The function being built; ``what`` needs it."""
    frame = IRBuilder.current().find(PrimFuncFrame)
    if frame is None:
        raise IRValueError(f"{what} belongs inside a T.prim_func")
    return frame


def last_block(what: str) -> BlockFrame:
    """The innermost frame, which must be a block; ``what`` needs it."""
    frame = IRBuilder.current().last(BlockFrame)
    if frame is None:
        raise IRValueError(
            f"{what} must stand directly inside `with T.block(...)`; put the statements of the "
            'innermost loop into one: with T.block("C"):'
        )
    return frame


class PrimFuncFrame(TIRFrame):
    """A function; its name becomes ``global_symbol`` unless it is private."""

    def __init__(self, is_private: bool = False) -> None:
        super().__init__()
        self.is_private = is_private
        self.adds_root = True
        self.name: str | None = None
        self.args: list[Var] = []
        self.buffer_map: dict[Var, Buffer] = {}
        self.ret_type: Type | None = None
        self.attrs: dict[str, object] | None = None
        self.root_alloc_buffers: list[Buffer] = []
        self.env_threads: dict[Var, IterVar] = {}
        self.as_written: PrimFunc | None = None
        """The function before what a script leaves out is added; None before the frame ends."""

    def _exit(self) -> None:
        attrs = dict(self.attrs or {})
        if not self.is_private and self.name is not None and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        func = PrimFunc(self.args, self.body(), self.ret_type, self.buffer_map, as_attrs(attrs))
        self.as_written = func
        func = complete(func, self.root_alloc_buffers, self.adds_root)
        func.span = self.span
        assert self.builder is not None
        parent = self.builder.frames[-1] if self.builder.frames else None
        if parent is None:
            self.builder.finish(func)
        elif hasattr(parent, "add_function"):
            parent.add_function(self.name or "main", func)
        else:
            raise IRValueError("a T.prim_func cannot stand inside another function")


class BlockFrame(TIRFrame):
    """A block, or with ``no_realize`` the bare Block node."""

    def __init__(self, name: str, no_realize: bool) -> None:
        super().__init__()
        self.name = name
        self.no_realize = no_realize
        self.iter_vars: list[IterVar] = []
        self.iter_values: list[PrimExpr] = []
        self.reads: list[BufferRegion] | None = None
        self.writes: list[BufferRegion] | None = None
        self.init: Stmt | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.annotations: dict[str, object] | None = None
        self.predicate: PrimExpr | None = None

    def _exit(self) -> None:
        attrs = dict(self.annotations or {})
        detect = (self.reads is None) | (self.writes is None) << 1
        if detect:
            attrs[DETECT] = IntImm("int64", detect)
        block = Block(
            self.iter_vars, self.reads or (), self.writes or (), self.name, self.body(),
            self.init, self.alloc_buffers, self.match_buffers, as_attrs(attrs), span=self.span,
        )  # fmt: skip
        if self.no_realize:
            if self.iter_values or self.predicate is not None:
                raise IRValueError(f"block {self.name!r} has no realize: its axes cannot be bound")
            self.emit(block)
            return
        predicate = IntImm("bool", 1) if self.predicate is None else self.predicate
        self.emit(BlockRealize(self.iter_values, predicate, block))


class BlockInitFrame(TIRFrame):
    """``with T.init()``: the statements that store the start value of a reduction."""

    def _enter(self) -> None:
        assert self.builder is not None
        frame = self.builder.frames[-2] if len(self.builder.frames) > 1 else None
        if not isinstance(frame, BlockFrame):
            raise IRValueError("T.init must stand directly inside `with T.block(...)`")
        if frame.init is not None:
            raise IRValueError(f"block {frame.name!r} has two T.init")

    def _exit(self) -> None:
        last_block("T.init").init = self.body()


class ForFrame(TIRFrame):
    """One loop or a nest; ``kind`` and ``annotations`` belong to each loop of it."""

    def __init__(
        self,
        doms: Sequence[Range],
        kind: ForKind,
        annotations: dict[str, object] | None = None,
        thread: str | None = None,
    ) -> None:
        super().__init__()
        self.doms = list(doms)
        self.vars = [Var("", dom.extent.dtype) for dom in doms]
        self.kind = kind
        self.annotations = annotations
        self.thread = thread

    def _enter(self) -> Var | list[Var]:
        return self.vars[0] if len(self.vars) == 1 else self.vars

    def _exit(self) -> None:
        stmt = self.body()
        for var, dom in zip(reversed(self.vars), reversed(self.doms), strict=True):
            binding = None
            if self.thread is not None:
                binding = IterVar(None, Var("", var.dtype), IterVar.ThreadIndex, self.thread)
            stmt = For(
                var, dom.min, dom.extent, self.kind, stmt, binding,
                as_attrs(self.annotations), span=self.span,
            )  # fmt: skip
        self.emit(stmt)


class WhileFrame(TIRFrame):
    """``while condition``."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition

    def _exit(self) -> None:
        self.emit(While(self.condition, self.body()))


class LetFrame(TIRFrame):
    """``var`` bound to ``value`` for the statements that follow."""

    def __init__(self, value: PrimExpr, var: Var | None) -> None:
        super().__init__()
        self.value = value
        self.var = Var("", _let_type(value)) if var is None else var

    def _enter(self) -> Var:
        return self.var

    def _exit(self) -> None:
        self.emit(LetStmt(self.var, self.value, self.body()))


def _let_type(value: PrimExpr) -> Type | DataType:
    return value.type_annotation if isinstance(value, Var) else value.dtype


class AssertFrame(TIRFrame):
    """``assert condition, message``, then the statements that follow."""

    def __init__(self, condition: PrimExpr, message: str) -> None:
        super().__init__()
        self.condition, self.message = condition, StringImm(message)

    def _exit(self) -> None:
        self.emit(AssertStmt(self.condition, self.message, self.body()))


class AttrFrame(TIRFrame):
    """An attribute around the statements that follow."""

    def __init__(self, node: object, attr_key: str, value: PrimExpr, result: object = None) -> None:
        super().__init__()
        self.node, self.attr_key, self.value, self.result = node, attr_key, value, result

    def _enter(self) -> Any:
        return self.result

    def _exit(self) -> None:
        self.emit(AttrStmt(self.node, self.attr_key, self.value, self.body()))


class LaunchThreadFrame(TIRFrame):
    """The statements that follow, once for each thread of a tag."""

    def __init__(self, extent: PrimExpr, iter_var: IterVar) -> None:
        super().__init__()
        self.extent, self.iter_var = extent, iter_var

    def _enter(self) -> Var:
        return self.iter_var.var

    def _exit(self) -> None:
        is_virtual = self.iter_var.thread_tag.startswith("vthread")
        key = "virtual_thread" if is_virtual else "thread_extent"
        self.emit(AttrStmt(self.iter_var, key, self.extent, self.body()))


class AllocateFrame(TIRFrame):
    """Memory for the statements that follow; gives its pointer."""

    def __init__(
        self,
        var: Var,
        dtype: str,
        extents: Sequence[PrimExpr],
        condition: PrimExpr,
        annotations: dict[str, object] | None,
    ) -> None:
        super().__init__()
        self.var, self.dtype, self.extents = var, dtype, extents
        self.condition, self.annotations = condition, annotations

    def _enter(self) -> Var:
        return self.var

    def _exit(self) -> None:
        self.emit(
            Allocate(
                self.var, self.dtype, self.extents, self.condition, self.body(),
                as_attrs(self.annotations),
            )
        )  # fmt: skip


class AllocateConstFrame(TIRFrame):
    """Constant memory for the statements that follow; gives its pointer."""

    def __init__(
        self,
        var: Var,
        dtype: str,
        extents: Sequence[PrimExpr],
        data: NDArray,
        annotations: dict[str, object] | None,
    ) -> None:
        super().__init__()
        self.var, self.dtype, self.extents = var, dtype, extents
        self.data, self.annotations = data, annotations

    def _enter(self) -> Var:
        return self.var

    def _exit(self) -> None:
        self.emit(
            AllocateConst(
                self.var, self.dtype, self.extents, self.data, self.body(),
                as_attrs(self.annotations),
            )
        )  # fmt: skip


class DeclBufferFrame(TIRFrame):
    """A buffer for the statements that follow; without ``data`` its memory is allocated, too."""

    def __init__(self, buffer: Buffer, allocate: bool) -> None:
        super().__init__()
        self.buffer, self.allocate = buffer, allocate

    def _enter(self) -> Buffer:
        return self.buffer

    def _exit(self) -> None:
        buffer = self.buffer
        stmt: Stmt = DeclBuffer(buffer, self.body(), span=self.span)
        if self.allocate:
            stmt = Allocate(buffer.data, buffer.dtype, buffer.shape, IntImm("bool", 1), stmt)
        self.emit(stmt)


class RealizeFrame(TIRFrame):
    """Memory of a region of a buffer, for the statements that follow."""

    def __init__(self, region: BufferRegion, scope: str, condition: PrimExpr) -> None:
        super().__init__()
        self.region, self.scope, self.condition = region, scope, condition

    def _exit(self) -> None:
        buffer = self.region.buffer
        body = BufferRealize(buffer, self.region.region, self.condition, self.body())
        if self.scope:
            body.span = self.span
            self.emit(AttrStmt(buffer, "realize_scope", StringImm(self.scope), body))
        else:
            self.emit(body)


class IfFrame(TIRFrame):
    """``if condition``; filled by a ThenFrame and perhaps an ElseFrame inside."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition
        self.then_case: Stmt | None = None
        self.else_case: Stmt | None = None

    def _exit(self) -> None:
        if self.stmts:
            raise IRValueError("inside T.If only T.Then and T.Else may stand")
        if self.then_case is None:
            raise IRValueError("T.If has no T.Then")
        self.emit(IfThenElse(self.condition, self.then_case, self.else_case))


class BranchFrame(TIRFrame):
    """One branch of the IfFrame around it."""

    branch: ClassVar[str]

    def _exit(self) -> None:
        frame = IRBuilder.current().last(IfFrame)
        if frame is None:
            raise IRValueError(f"T.{self.branch.title()} belongs inside T.If")
        if getattr(frame, f"{self.branch}_case") is not None:
            raise IRValueError(f"T.If has two T.{self.branch.title()}")
        setattr(frame, f"{self.branch}_case", self.body())


class ThenFrame(BranchFrame):
    """The statements that run if the condition holds."""

    branch = "then"


class ElseFrame(BranchFrame):
    """The statements that run if the condition does not hold."""

    branch = "else"


RegionLike = Buffer | BufferRegion | BufferLoad


def as_buffer_region(value: RegionLike) -> BufferRegion:
    """A region from a region, a load (one element) or a whole buffer."""
    if isinstance(value, BufferRegion):
        return value
    if isinstance(value, Buffer):
        return BufferRegion(value, [Range.from_min_extent(0, size) for size in value.shape])
    buffer = getattr(value, "buffer", None)
    if isinstance(buffer, Buffer):
        return BufferRegion(buffer, [_index_range(index) for index in value.indices])
    raise IRTypeError(
        f"expected a buffer region such as A[i, 0:4], got {type(value).__name__}: {value!r}"
    )


def _index_range(index: PrimExpr) -> Range:
    if isinstance(index, Ramp):
        return Range.from_min_extent(index.base, tir_op.multiply(index.stride, index.lanes))
    return Range.from_min_extent(index, IntImm(index.dtype, 1))


def evaluate_statement(value: ExprLike) -> None:
    """Add ``Evaluate(value)``."""
    add_statement(Evaluate(as_prim_expr(value)))


def frozen(value: object) -> Any:
    """Lists to Arrays, for attributes of nodes."""
    return Array(value) if isinstance(value, list) else value


def as_node(value: Any) -> Any:
    """A node or a text itself, a sequence as an Array, anything else as an expression."""
    if isinstance(value, list | tuple):
        return Array([as_node(item) for item in value])
    return value if isinstance(value, Node | str) else as_prim_expr(value)
