"""Where and how a buffer is stored: set_scope, unsafe_set_dtype, storage_align."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from weft.ir.expr import PrimExpr
from weft.ir.node import expect
from weft.ir.type import PointerType, PrimType
from weft.support.dtype import DataType
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Cast, Var
from weft.tir.schedule import checks, rewrite, tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.primitive.buffer.buffer_argument import buffer_position
from weft.tir.schedule.primitive.cache.cache_access import accesses
from weft.tir.schedule.primitive.cache.cache_stage import check_storage_scope
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.state import ScheduleState
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, BufferStore, For

ALIGN = "buffer_dim_align"
SHARED_BY = {"shared": ("threadIdx", "vthread"), "warp": ("threadIdx.x",)}
"""Kind of scope -> the thread axes that share one copy of a buffer; in other scopes none do."""


class NotAllocatedError(ScheduleFailure):
    """The buffer is not allocated by a block of the function."""

    hint = (
        "a parameter or a match_buffer is laid out elsewhere; cache_write makes a buffer of its own"
    )


class ThreadScopeError(ScheduleFailure):
    """In that scope not all threads that use the buffer would see the same memory."""

    hint = "set the scope of a buffer that one thread (or block of threads) alone uses"


class PointerAccessError(ScheduleFailure):
    """The buffer is accessed otherwise than by its elements."""


class StoredTypeError(ScheduleFailure):
    """Elements of the buffer cannot be stored in that type."""

    hint = "the type must have as many lanes as that of the buffer"


class AlignmentError(ScheduleFailure):
    """The axis, factor or annotation of an alignment is wrong."""


# ---- set_scope


def _with_position(self: Session, arguments: dict[str, Any]) -> None:
    place = buffer_position(self, arguments["block"], arguments["buffer_index"], "write")
    arguments["buffer_index"] = place[1]


@primitive("SetScope", "block", canonical=_with_position)
def set_scope(
    self: Session, block: BlockRV | str, buffer_index: int | str | Buffer, storage_scope: str
) -> None:
    """Put a buffer that a block writes into another storage scope, such as "shared" or "local".

    Args:
        block: a block that writes the buffer, or its name.
        buffer_index: the buffer's place among what the block writes, its name, or itself. The
            function must allocate it.
        storage_scope: the new scope.

    Raises:
        NotAllocatedError: the buffer is a parameter of the function.
        ThreadScopeError: not all threads that use the buffer would see the same memory.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.set_scope("B", 0, "local")
    >>> sch.get(sch.get_block("B")).writes[0].buffer.scope()
    'local'
    """
    sref = self._sref(block)
    state = self.state
    buffer, _ = checks.nth_access(state, sref, _position(buffer_index), write=True)
    scope = storage_scope or "global"
    if buffer.scope() == scope:
        return
    check_storage_scope(state, scope)
    site = _allocation(state, sref, buffer)
    _check_threads(state, site, buffer, scope)
    _replace(state, site, _Scoped(buffer, scope))


def _position(index: object) -> int:
    assert isinstance(index, int)  # canonical
    return index


def _allocation(state: ScheduleState, sref: StmtSRef, buffer: Buffer) -> StmtSRef:
    """The block around ``sref`` that allocates a buffer."""
    item: StmtSRef | None = sref
    while item is not None:
        if isinstance(item.stmt, Block):
            if any(allocated is buffer for allocated in item.stmt.alloc_buffers):
                return item
            if any(match.buffer is buffer for match in item.stmt.match_buffers):
                raise NotAllocatedError(
                    state, f"{buffer.name} is a match_buffer of {name_of(item)}", item
                )
        item = item.parent
    raise NotAllocatedError(
        state,
        f"{buffer.name}, which {name_of(sref)} writes, is no buffer that a block allocates",
        sref,
    )


def _check_threads(state: ScheduleState, site: StmtSRef, buffer: Buffer, scope: str) -> None:
    """Threads that do not share memory of this scope must not pass values through the buffer.

    So the innermost statement around all blocks that use it must be inside of every loop over such
    threads.
    """
    if scope == "global" or scope.startswith("global.") or not state.enable_check:
        return
    users = [state.sref_of(item) for item in _users(site.stmt, buffer.data)]
    if not users:
        return
    meeting = tree.lowest_common_ancestor(users)
    inside = {id(meeting)}
    item: StmtSRef | None = meeting
    while item is not None and item is not site:
        inside.add(id(item))
        item = item.parent
    together = SHARED_BY.get(scope.split(".")[0], ())
    for user in users:
        above: StmtSRef | None = user.parent
        while above is not None and above is not site:
            stmt = above.stmt
            binding = stmt.thread_binding if isinstance(stmt, For) else None
            if (
                binding is not None
                and id(above) not in inside
                and not binding.thread_tag.startswith(together or ("none",))
            ):
                raise ThreadScopeError(
                    state,
                    f"{buffer.name} would be in {scope!r}, and {name_of(above)} over "
                    f"{binding.thread_tag} runs {name_of(user)} but not all that use the buffer",
                    (above, user),
                )
            above = above.parent


def _users(stmt: For | Block | None, data: Var) -> Iterator[Block]:
    """The blocks inside a statement that use a buffer themselves, not only in blocks inside."""
    assert stmt is not None
    for realize in tree.child_realizes(stmt):
        if data in rewrite.variables_of(realize.block):
            inner = list(_users(realize.block, data))
            yield from inner or [realize.block]


# ---- replacing a buffer and its views


class _Replaced(rewrite.BlockMutator):
    """Replaces a buffer, other buffers over its data, and views of it by their ``replacement``."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__()
        self.data: dict[Var, Var] = {}
        self.buffers: dict[int, Buffer] = {}
        self.root = self.know(buffer)

    def replacement(self, buffer: Buffer) -> Buffer:
        """What replaces a buffer: with new data and another name."""
        raise NotImplementedError

    def know(self, buffer: Buffer) -> Buffer:
        """Replace a buffer from here on."""
        new = self.buffers[id(buffer)] = self.replacement(buffer)
        self.data[buffer.data] = new.data
        return new

    def visit_Var(self, node: Var) -> Var:
        return self.data.get(node, node)

    def visit_Buffer(self, node: Buffer) -> Buffer:
        known = self.buffers.get(id(node))
        if known is not None:
            return known
        buffer = self.visit_default(node)
        if buffer is not node:
            self.buffers[id(node)] = buffer
        return buffer

    def visit_Block(self, node: Block) -> Block:
        if self.data.keys().isdisjoint(rewrite.variables_of(node)):
            return node
        for match in node.match_buffers:
            if match.source.buffer.data in self.data:
                self.know(match.buffer)
        return super().visit_Block(node)


class _Scoped(_Replaced):
    """Puts a buffer into another scope."""

    def __init__(self, buffer: Buffer, scope: str) -> None:
        self.scope = scope
        super().__init__(buffer)

    def replacement(self, buffer: Buffer) -> Buffer:
        pointer = buffer.data.type_annotation
        assert isinstance(pointer, PointerType)
        name = f"{buffer.data.name}_{self.scope}"
        data = Var(name, PointerType(pointer.element_type, self.scope))
        return buffer.with_(data=data, name=f"{buffer.name}_{self.scope}")


@deep_recursion
def _replace(state: ScheduleState, site: StmtSRef, work: _Replaced) -> None:
    assert site.stmt is not None
    stmt = work.visit(site.stmt)
    state.replace(site, stmt, work.reuse)


# ---- unsafe_set_dtype


@primitive("UnsafeSetDType", "block")
def unsafe_set_dtype(self: Session, block: BlockRV | str, buffer_index: int, dtype: str) -> None:
    """Store a buffer that a block writes in another type; each load and store converts.

    Unsafe: values that the new type does not hold change. Where a number is loaded from a wider
    type of floats and converted to that, no conversion is left.

    Args:
        block: a block that writes the buffer, or its name.
        buffer_index: the buffer's place among what the block writes. The function must allocate
            it.
        dtype: the new type.

    Raises:
        NotAllocatedError: the buffer is a parameter of the function.
        PointerAccessError: the buffer is used other than by loads and stores of its elements.
        StoredTypeError: elements of the buffer cannot be stored in that type.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.unsafe_set_dtype("B", 0, "float16")
    >>> sch.get(sch.get_block("B")).writes[0].buffer.dtype
    'float16'
    """
    sref = self._sref(block)
    state = self.state
    buffer, _ = checks.nth_access(state, sref, buffer_index, write=True)
    wanted = DataType(dtype)
    if buffer.dtype == wanted:
        return
    if wanted.lanes != buffer.dtype.lanes or wanted.is_handle or wanted.is_scalable:
        raise StoredTypeError(
            state, f"{buffer.name} holds {buffer.dtype}, which cannot be stored as {wanted}", sref
        )
    site = _allocation(state, sref, buffer)
    _check_elements(state, site, buffer)
    _replace(state, site, _Retyped(buffer, wanted))


def _check_elements(state: ScheduleState, site: StmtSRef, buffer: Buffer) -> None:
    """The buffer, and the views of it, are used by loads and stores of elements alone."""
    uses = accesses(site.stmt, buffer)
    if uses.pointer or uses.other is not None:
        how = "through its pointer" if uses.other is None else f"as {uses.other.name} too"
        raise PointerAccessError(state, f"{buffer.name} is accessed {how}", site)
    for view in uses.matched:
        if view.dtype != buffer.dtype:
            raise PointerAccessError(
                state, f"{buffer.name} is accessed as {view.name} of type {view.dtype} too", site
            )
        _check_elements(state, site, view)


class _Retyped(_Replaced):
    """Gives a buffer another type."""

    def __init__(self, buffer: Buffer, dtype: DataType) -> None:
        self.old, self.new = buffer.dtype, dtype
        super().__init__(buffer)

    def replacement(self, buffer: Buffer) -> Buffer:
        pointer = buffer.data.type_annotation
        assert isinstance(pointer, PointerType)
        kind = PointerType(PrimType(self.new), pointer.storage_scope)
        return buffer.with_(data=Var(buffer.data.name, kind), dtype=self.new)

    def visit_BufferLoad(self, node: BufferLoad) -> PrimExpr:
        load = self.visit_default(node)
        return Cast(node.dtype, load) if id(node.buffer) in self.buffers else load

    def visit_Cast(self, node: Cast) -> PrimExpr:
        cast = expect(self.visit_default(node), Cast)
        load = cast.value.value if isinstance(cast.value, Cast) else None
        if cast is not node and isinstance(load, BufferLoad) and self.is_whole(cast, load):
            return load
        return cast

    def is_whole(self, cast: Cast, load: BufferLoad) -> bool:
        """Whether two conversions give back a load: each store was of a number of the old type."""
        is_ours = any(load.buffer is buffer for buffer in self.buffers.values())
        return is_ours and cast.dtype == load.dtype and _holds(self.new, self.old)

    def visit_BufferStore(self, node: BufferStore) -> BufferStore:
        if id(node.buffer) not in self.buffers:
            return self.visit_default(node)
        value = self.visit(node.value)
        return node.with_(
            buffer=self.visit(node.buffer),
            value=Cast(self.new.with_lanes(value.dtype.lanes), value),
            indices=self.visit(node.indices),
            predicate=self.visit(node.predicate),
        )


def _holds(wide: DataType, narrow: DataType) -> bool:
    """Whether a type of floats has all numbers of another type, of floats or of integers."""
    is_number = narrow.is_float or narrow.is_int or narrow.is_uint
    most = {64: 32, 32: 16}.get(wide.bits, 0)
    return wide.is_float and is_number and narrow.bits <= most


# ---- storage_align


@primitive("StorageAlign", "block")
def storage_align(
    self: Session, block: BlockRV | str, buffer_index: int, axis: int, factor: int, offset: int
) -> None:
    """Ask that the stride of a buffer's axis be ``factor * k + offset`` for some k.

    The elements in between stay unused. Rows whose stride is no multiple of the number of memory
    banks keep threads from waiting for the same bank.

    Args:
        block: a block that writes the buffer, or its name.
        buffer_index: the buffer's place among what the block writes. The function must allocate
            it.
        axis: the axis whose stride it is; negative numbers count from the end.
        factor: a positive number.
        offset: what the stride is beyond a multiple of ``factor``.

    Raises:
        NotAllocatedError: the buffer is a parameter of the function.
        AlignmentError: the buffer has no such axis, or ``factor`` is not positive.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> C = te.compute((8, 32), lambda i, j: B[i, j] + 1.0, name="C")
    >>> sch = tir.Schedule(te.create_prim_func([A, C]))
    >>> sch.storage_align("B", 0, axis=0, factor=32, offset=4)
    >>> sch.get(sch.get_block("B")).annotations["buffer_dim_align"]
    [[0, 0, 32, 4]]
    """
    sref = self._sref(block)
    state = self.state
    buffer, _ = checks.nth_access(state, sref, buffer_index, write=True)
    if factor < 1:
        raise AlignmentError(state, f"expected a factor of at least 1, got {factor}", sref)
    if not -buffer.ndim <= axis < buffer.ndim:
        raise AlignmentError(
            state,
            f"{buffer.name} has {buffer.ndim} axes, got axis {axis}",
            sref,
            f"-{buffer.ndim} to {buffer.ndim - 1} are its axes",
        )
    axis %= buffer.ndim
    _allocation(state, sref, buffer)
    entries = _entries(state, sref)
    alignment = [buffer_index, axis, factor, offset]
    places = [i for i, entry in enumerate(entries) if entry[:2] == alignment[:2]]
    if places:
        entries[places[0]] = alignment
    else:
        entries.append(alignment)
    assert isinstance(sref.stmt, Block)
    annotations = {**sref.stmt.annotations, ALIGN: entries}
    state.replace(sref, sref.stmt.with_(annotations=annotations))


def _entries(state: ScheduleState, sref: StmtSRef) -> list[list[int]]:
    """The alignments in the block's annotation."""
    given = tree.block_of(sref).annotations.get(ALIGN, [])
    alignments = []
    for entry in given:
        values = [getattr(item, "value", item) for item in _sequence(entry)]
        numbers = [value for value in values if isinstance(value, int)]
        if len(values) != 4 or len(numbers) != 4:
            raise AlignmentError(
                state,
                f"the annotation {ALIGN} of {name_of(sref)} is {given}",
                sref,
                "it is a list of [buffer, axis, factor, offset]",
            )
        alignments.append(numbers)
    return alignments


def _sequence(value: object) -> list[object]:
    return list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else []
