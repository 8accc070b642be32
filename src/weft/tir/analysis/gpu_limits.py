"""Whether a lowered program fits a GPU: threads, memory and vectors of each kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from weft.ir.expr import IntImm
from weft.ir.functor import Visitor
from weft.ir.type import PointerType
from weft.tir.buffer import BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AttrStmt, BufferStore, For, ForKind
from weft.tir.transform.threads.thread_scope import binding_of

_MEMORIES: Final = {"local": "max_local_memory_per_block", "shared": "max_shared_memory_per_block"}


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, object]) -> bool:
    """Whether each kernel of a function keeps the limits.

    Args:
        func: the function, after its blocks are lowered.
        constraints: the limits by name: ``max_threads_per_block``, ``max_thread_x``, ``_y`` and
            ``_z``, ``max_vthread``, ``max_local_memory_per_block`` and
            ``max_shared_memory_per_block`` (bytes), ``max_vector_bytes`` and ``max_kernels``. What
            is not named has no limit.

    >>> from weft import te, tir
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.bind(sch.get_loops("B")[0], "threadIdx.x")
    >>> verify_gpu_code(sch.mod["main"], {"max_threads_per_block": 4})
    False
    """
    limits = {name: int(str(getattr(value, "value", value))) for name, value in constraints.items()}
    work = _Kernels(limits)
    work.visit(func.body)
    within = work.kernels <= limits.get("max_kernels", work.kernels)
    return within and not work.broken


@dataclass
class _Kernel:
    """What one kernel takes."""

    threads: dict[str, int] = field(default_factory=dict)
    virtual: int = 1
    bytes: dict[str, int] = field(default_factory=dict)


class _Kernels(Visitor):
    """Adds up what each kernel takes; ``broken`` once a limit is exceeded."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        super().__init__()
        self.limits = limits
        self.kernels = 0
        self.broken = False
        self.kernel: _Kernel | None = None

    def visit_AttrStmt(self, stmt: AttrStmt) -> None:
        self._launch(stmt)

    def visit_For(self, loop: For) -> None:
        vector = loop.kind is ForKind.VECTORIZED
        if vector and not isinstance(loop.extent, IntImm):
            self.broken = True
        self._launch(loop)

    def visit_Allocate(self, stmt: Allocate) -> None:
        self._check_vector(stmt.dtype.bits * stmt.dtype.lanes)
        if self.kernel is not None:
            kind = stmt.buffer_var.type_annotation
            scope = kind.storage_scope if isinstance(kind, PointerType) else ""
            memory = scope.partition(".")[0]
            sizes = [size.value for size in stmt.extents if isinstance(size, IntImm)]
            size = math.prod(sizes) * ((stmt.dtype.bits + 7) // 8) * stmt.dtype.lanes
            self.kernel.bytes[memory] = self.kernel.bytes.get(memory, 0) + size
        self.visit_default(stmt)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self._check_vector(load.dtype.bits * load.dtype.lanes, load.dtype.lanes)
        self.visit_default(load)

    def visit_BufferStore(self, store: BufferStore) -> None:
        dtype = store.value.dtype
        self._check_vector(dtype.bits * dtype.lanes, dtype.lanes)
        self.visit_default(store)

    def _launch(self, stmt: AttrStmt | For) -> None:
        """Count the threads that a statement starts; the outermost starts a kernel."""
        binding = binding_of(stmt)
        if binding is None:
            self.visit_default(stmt)
            return
        outermost = self.kernel is None
        if self.kernel is None:
            self.kernel = _Kernel()
            self.kernels += 1
        extent = binding.extent
        if not isinstance(extent, IntImm):
            self.broken = True
        elif binding.is_virtual:
            self.kernel.virtual *= extent.value
        elif not binding.is_block:
            known = self.kernel.threads.setdefault(binding.tag, extent.value)
            self.broken = self.broken or known != extent.value
        self.visit_default(stmt)
        if outermost:
            self._check(self.kernel)
            self.kernel = None

    def _check(self, kernel: _Kernel) -> None:
        taken = {
            "max_threads_per_block": math.prod(kernel.threads.values()),
            "max_vthread": kernel.virtual,
            **{f"max_thread_{tag[-1]}": count for tag, count in kernel.threads.items()},
            **{_MEMORIES[name]: kernel.bytes.get(name, 0) for name in _MEMORIES},
        }
        for name, value in taken.items():
            self.broken = self.broken or value > self.limits.get(name, value)

    def _check_vector(self, bits: int, lanes: int = 2) -> None:
        if lanes > 1 and bits // 8 > self.limits.get("max_vector_bytes", bits):
            self.broken = True
