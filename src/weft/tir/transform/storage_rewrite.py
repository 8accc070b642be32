"""StorageRewrite lets temporaries that are never alive at the same time share memory.

Where a sequence of statements stands under several allocations, a buffer is alive from the first
statement that mentions it to the last. One that starts to live after another has ended takes that
one's memory, if both have constant sizes, elements of one width and one storage scope. Before:
``A = allocate(64); B = allocate(32); use(A); use(B)``. After: ``B`` is a view of ``A``'s memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.ir.expr import IntImm
from weft.ir.functor import mentions, substitute
from weft.ir.node import Array
from weft.ir.transform import PassContext
from weft.support.dtype import DataType
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, BufferStore, DeclBuffer, SeqStmt, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body


@dataclass
class _Life:
    """An allocation, and the numbers of the first and last statement that mention it."""

    stmt: Allocate
    elements: int
    first: int
    last: int


@dataclass
class _Storage:
    """Memory that several buffers use in turn: that of the first, enlarged to hold each of them."""

    stmt: Allocate
    elements: int
    free_after: int


def _constant(stmt: Allocate) -> int | None:
    count = 1
    for extent in stmt.extents:
        if not isinstance(extent, IntImm):
            return None
        count *= extent.value
    always = isinstance(stmt.condition, IntImm) and stmt.condition.value
    return count if always and not stmt.annotations else None


def _kind(stmt: Allocate) -> tuple[int, int, str]:
    """What two allocations must agree in to share memory."""
    annotation: object = stmt.buffer_var.type_annotation
    bits = 8 if stmt.dtype.is_bool else stmt.dtype.bits
    return bits, stmt.dtype.lanes, str(getattr(annotation, "storage_scope", "") or "global")


class _Share(StmtMutator):
    def __init__(self, scopes: tuple[str, ...] | None) -> None:
        super().__init__()
        self.scopes = scopes

    def visit_BufferStore(self, store: BufferStore) -> Stmt:
        return store

    def visit_Allocate(self, stmt: Allocate) -> Stmt:
        chain, core = _chain(stmt)
        core = self.visit(core)
        mapping: dict[Var, _Storage] = {}
        if isinstance(core, SeqStmt):
            mapping = self.shared(chain, core)
        return _rebuilt(chain, core, mapping)

    def shared(self, chain: list[Any], core: SeqStmt) -> dict[Var, _Storage]:
        """For each data variable, the storage that it uses."""
        lives: list[_Life] = []
        for stmt in chain:
            if not isinstance(stmt, Allocate):
                continue
            count = _constant(stmt)
            if count is None or not self.wanted(stmt):
                continue
            data = stmt.buffer_var
            places = [index for index, item in enumerate(core.seq) if mentions(item, data)]
            if not places:
                continue
            if _viewed(stmt.buffer_var, chain):
                lives.append(_Life(stmt, count, places[0], places[-1]))
        storages: list[_Storage] = []
        mapping: dict[Var, _Storage] = {}
        for life in sorted(lives, key=lambda item: item.first):
            storage = _free(storages, life)
            if storage is None:
                storage = _Storage(life.stmt, life.elements, life.last)
                storages.append(storage)
            storage.elements = max(storage.elements, life.elements)
            storage.free_after = life.last
            mapping[life.stmt.buffer_var] = storage
        return mapping

    def wanted(self, stmt: Allocate) -> bool:
        return self.scopes is None or _kind(stmt)[2].partition(".")[0] in self.scopes


def _chain(stmt: Stmt) -> tuple[list[object], Stmt]:
    """The allocations and declarations around a statement, and that statement."""
    chain: list[object] = []
    while isinstance(stmt, (Allocate, DeclBuffer)):
        chain.append(stmt)
        stmt = stmt.body
    return chain, stmt


def _viewed(data: Var, chain: list[object]) -> bool:
    """Whether one declaration gives the memory its buffer, whose offset may change."""
    declared = [item for item in chain if isinstance(item, DeclBuffer) and item.buffer.data is data]
    return len(declared) == 1 and not isinstance(declared[0].buffer.elem_offset, Var)


def _free(storages: list[_Storage], life: _Life) -> _Storage | None:
    """The storage that fits best among those whose last user has ended."""
    fitting = [
        item
        for item in storages
        if item.free_after < life.first and _kind(item.stmt) == _kind(life.stmt)
    ]
    if not fitting:
        return None
    return min(
        fitting,
        key=lambda item: (item.elements < life.elements, abs(item.elements - life.elements)),
    )


def _rebuilt(chain: list[Any], core: Stmt, mapping: dict[Var, _Storage]) -> Stmt:
    body = core
    moved: dict[object, object] = {}
    for data, storage in mapping.items():
        if storage.stmt.buffer_var is not data:
            moved[data] = storage.stmt.buffer_var
    if moved:
        for item in chain:
            if isinstance(item, DeclBuffer) and item.buffer.data in moved:
                moved[item.buffer] = item.buffer.with_(data=moved[item.buffer.data])
        body = substitute(core, moved)
    declared: list[Stmt] = []
    allocated: list[Allocate] = []
    for item in chain:
        if isinstance(item, DeclBuffer):
            declared.append(item.with_(buffer=moved.get(item.buffer, item.buffer)))
        elif item.buffer_var not in moved:
            allocated.append(_sized(item, mapping.get(item.buffer_var)))
    if not moved:
        for stmt in reversed(chain):
            body = stmt.with_(body=body)
        return body
    for stmt in [*reversed(declared), *reversed(allocated)]:
        body = stmt.with_(body=body)
    return body


def _sized(stmt: Allocate, storage: _Storage | None) -> Allocate:
    if storage is None or storage.elements == _constant(stmt):
        return stmt
    kind = DataType("int32" if storage.elements < 1 << 31 else "int64")
    return stmt.with_(extents=Array([IntImm(kind, storage.elements)]))


def storage_rewrite(func: PrimFunc) -> PrimFunc:
    """The function with memory shared; itself if ``tir.disable_storage_rewrite`` is set."""
    disabled = PassContext.current().config.get("tir.disable_storage_rewrite", False)
    return func if disabled else rewrite_body(func, _Share(None))


def merge_shared_memory(func: PrimFunc) -> PrimFunc:
    """The function with the shared memory of a block of threads used in turn.

    Run it before ThreadSync, which then puts barriers between the users of one memory.
    """
    return rewrite_body(func, _Share(("shared",)))


StorageRewrite = define_pass("StorageRewrite", storage_rewrite)
MergeSharedMemoryAllocations = define_pass("MergeSharedMemoryAllocations", merge_shared_memory)
