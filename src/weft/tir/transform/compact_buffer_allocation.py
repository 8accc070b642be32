"""CompactBufferAllocation: shrinks the buffers of a block to the region that is accessed.

Before: ``B = alloc_buffer((128, 128))`` in the body of loop ``i``, which uses ``B[i, 0:128]``.
After: ``B = alloc_buffer((1, 128))``, with accesses ``B[0, j]``.

It needs opaque blocks. For each dimension, it computes the interval that is accessed over the loops
inside of the allocating block. If the interval's extent is a constant smaller than the dimension,
the dimension shrinks, and the indices are shifted by the lower bound. Without ``is_strict``, a
constant extent counts as smaller than an unknown one, so that tiles of such a dimension may be kept
in registers, and its last tile in whole vectors. The annotation ``buffer_dim_align`` (of
``storage_align``) becomes strides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.int_set import eval_set
from weft.arith.interval import IntervalSet
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator, Visitor, collect, contains, mentions
from weft.ir.node import Array
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, Broadcast, Call, Cast, FloorDiv, FloorMod, Let, Ramp, Var, is_call
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, AttrStmt, Block, BufferStore, DeclBuffer, For, ForKind, LetStmt
from weft.tir.transform.lower_opaque_block import allocation_extents
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body
from weft.tir.transform.threads.thread_scope import binding_of, scope_of

A = TypeVar("A", BufferLoad, BufferStore)


@dataclass
class _Usage:
    """The accesses of one buffer, each with the loops around it inside of the allocating block.

    Loops over threads that share the memory count as inside.
    """

    buffer: Buffer
    depth: int
    shared_by: list[For] = field(default_factory=list)
    accesses: list[tuple[Array[PrimExpr], list[For], list[For]]] = field(default_factory=list)
    """Indices, the loops inside the allocating block, and all loops."""
    exact: bool = True
    plan: tuple[Buffer, list[PrimExpr]] | None = None


class _Gather(Visitor):
    def __init__(self) -> None:
        self.loops: list[For] = []
        self.usages: dict[int, _Usage] = {}
        self.opaque: set[int] = set()
        self.let_vars: set[int] = set()
        self.aligned: dict[int, dict[int, tuple[int, int]]] = {}

    def visit_Block(self, block: Block) -> None:
        for index, axis, factor, offset in _alignments(block):
            if not 0 <= index < len(block.writes):
                raise IRValueError(
                    f"buffer_dim_align of block {block.name_hint}: expected the number of a buffer "
                    f"it writes, below {len(block.writes)}, got {index}"
                )
            aligned = self.aligned.setdefault(id(block.writes[index].buffer), {})
            aligned[axis] = (factor, offset)
        for buffer in block.alloc_buffers:
            self.allocated(buffer)
        for match in block.match_buffers:
            region = match.source.region
            lows = Array([dom.min for dom in region])
            highs = [op.subtract(op.add(dom.min, dom.extent), 1) for dom in region]
            self.record(match.source.buffer, lows)
            self.record(match.source.buffer, Array(highs))
        self.visit(block.match_buffers)
        self.visit(block.body)

    def visit_Allocate(self, stmt: Allocate) -> None:
        """Record a lowered allocation, whose body declares its buffer."""
        if _owned(stmt) is not None:
            self.allocated(_owned(stmt))
        self.visit_default(stmt)

    def allocated(self, buffer: Any) -> None:
        shared_by = [loop for loop in self.loops if _is_shared_by(buffer, loop)]
        self.usages[id(buffer)] = _Usage(buffer, len(self.loops), shared_by)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        """Treat a launch of threads as the loop that it was before lowering."""
        binding = binding_of(attr)
        if binding is None:
            self.visit_default(attr)
            return
        low = IntImm(binding.var.dtype, 0)
        loop = For(binding.var, low, binding.extent, ForKind.THREAD_BINDING, attr.body, attr.node)
        self.loops.append(loop)
        self.visit(attr.body)
        self.loops.pop()

    def visit_For(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loops.append(loop)
        self.visit(loop.body)
        self.loops.pop()

    def visit_Let(self, let: Let | LetStmt) -> None:
        self.let_vars.add(id(let.var))
        self.visit_default(let)

    visit_LetStmt = visit_Let

    def visit_Call(self, call: Call) -> None:
        for arg in call.args:
            if isinstance(arg, Var) and arg.dtype.is_handle:
                self.opaque.add(id(arg))
            if isinstance(arg, Buffer):  # the callee sees the whole buffer
                self.opaque.add(id(arg.data))
            if isinstance(arg, BufferLoad) and is_call(call, "address_of"):
                self.opaque.add(id(arg.buffer.data))
        self.visit_default(call)

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit(load.indices)
        self.record(load.buffer, load.indices)

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit(store.value)
        self.visit(store.indices)
        self.record(store.buffer, store.indices)

    def record(self, buffer: Buffer, indices: Array[PrimExpr]) -> None:
        usage = self.usages.get(id(buffer))
        if usage is None:
            return
        inside = [*usage.shared_by, *self.loops[usage.depth :]]
        if self.unknown(indices):
            usage.exact = False
        for corner in (_end_lanes(indices, 0), _end_lanes(indices, -1)):
            if corner is None:
                usage.exact = False
            else:
                usage.accesses.append((corner, inside, list(self.loops)))
            if all(index.dtype.lanes == 1 for index in indices):
                break

    def unknown(self, indices: Array[PrimExpr]) -> bool:
        """Whether an index depends on data or on a let variable, so that its values are unknown."""
        if contains(indices, (BufferLoad, Call)):
            return True
        return any(id(var) in self.let_vars for var in collect(indices, Var))


def _end_lanes(indices: Array[PrimExpr], lane: int) -> Array[PrimExpr] | None:
    """The indices of the first (0) or last (-1) lane of an access; None if they are not affine."""
    ends = [_end_lane(index, lane) for index in indices]
    plain = [end for end in ends if end is not None]
    return Array(plain) if len(plain) == len(ends) else None


def _end_lane(index: PrimExpr, lane: int) -> PrimExpr | None:
    if index.dtype.lanes == 1:
        return index
    if isinstance(index, Broadcast):
        return index.value
    if isinstance(index, Ramp):
        steps = 0 if lane == 0 else index.dtype.lanes - 1
        return op.add(index.base, op.multiply(index.stride, op.const(steps, index.base.dtype)))
    if isinstance(index, Cast):
        inner = _end_lane(index.value, lane)
        return None if inner is None else op.cast(index.dtype.element, inner)
    if isinstance(index, Add):
        a, b = _end_lane(index.a, lane), _end_lane(index.b, lane)
        return None if a is None or b is None else op.add(a, b)
    return None


def _owned(stmt: Allocate) -> Buffer | None:
    """The buffer over a whole allocation, if the allocation's body declares it, or None."""
    decl = stmt.body
    if not isinstance(decl, DeclBuffer) or decl.buffer.data is not stmt.buffer_var:
        return None
    offset = decl.buffer.elem_offset
    if decl.buffer.dtype is not stmt.dtype or not isinstance(offset, IntImm) or offset.value:
        return None
    return decl.buffer


def _pointers(body: object) -> set[int]:
    """The data variables that calls or several buffers use: these buffers cannot shrink."""
    pointers = {
        id(arg)
        for call in collect(body, Call)
        for arg in call.args
        if isinstance(arg, Var) and arg.dtype.is_handle
    }
    seen: dict[int, Buffer] = {}
    for buffer in collect(body, Buffer):
        if seen.setdefault(id(buffer.data), buffer) is not buffer:
            pointers.add(id(buffer.data))
    return pointers


def _is_shared_by(buffer: Buffer, loop: For) -> bool:
    """Whether all threads of a loop share the memory of the buffer."""
    binding, scope = binding_of(loop), scope_of(buffer)
    if binding is None or scope not in ("shared", "warp"):
        return False
    return binding.is_thread if scope == "shared" else binding.tag == "threadIdx.x"


class _Bounds:
    """The least and the largest values of indices.

    The loads and stores of a tile have the same indices in the same loops again and again, so
    intervals are kept.
    """

    def __init__(self) -> None:
        self.analyzer = Analyzer()
        self._known: dict[tuple[int, ...], IntervalSet] = {}
        self._analyzers: dict[tuple[int, ...], Analyzer] = {}

    def accessed(self, usage: _Usage, axis: int) -> tuple[PrimExpr, int] | None:
        """(lowest index, constant extent) of the accesses along one dimension, or None."""
        low: PrimExpr | None = None
        high: PrimExpr | None = None
        for interval in self._intervals(usage, axis):
            if interval.is_nothing():  # a loop that runs no iteration
                continue
            if not interval.is_bounded:
                return None
            first, last = interval.min_value, interval.max_value
            low = first if low is None else op.minimum(low, first)
            high = last if high is None else op.maximum(high, last)
        if low is None or high is None:
            return None
        extent = self.analyzer.simplify(op.add(op.subtract(high, low), op.const(1, high.dtype)))
        if not isinstance(extent, IntImm) or not 1 <= extent.value < 1 << 31:
            return None
        return self.analyzer.simplify(low), extent.value

    def _intervals(self, usage: _Usage, axis: int) -> list[IntervalSet]:
        """The different intervals of the indices of one dimension."""
        intervals = {}
        for indices, loops, every in usage.accesses:
            index = indices[axis]
            around = tuple([id(loop) for loop in every])
            key = (id(index), *[id(loop) for loop in loops], 0, *around)
            interval = self._known.get(key)
            if interval is None:
                domain: dict[Any, Any] = {loop.loop_var: loop.domain for loop in loops}
                joined = self._rejoined(index, every, around)
                interval = self._known[key] = eval_set(joined, domain, self.analyzer)
            intervals[id(interval)] = interval
        return list(intervals.values())

    def _rejoined(self, index: PrimExpr, loops: list[For], key: tuple[int, ...]) -> PrimExpr:
        """Simplify ``i // 4 * 4 + i % 4`` to ``i``: the sum of the parts' intervals is too wide.

        A loop of one iteration, also one around the buffer, is no reason for a wider interval.
        """
        single = [loop.loop_var for loop in loops if is_const_int(loop.extent, 1)]
        if not contains(index, (FloorDiv, FloorMod)) and not mentions(index, *single):
            return index
        analyzer = self._analyzers.get(key)
        if analyzer is None:
            analyzer = analyzer_of({loop.loop_var: loop.domain for loop in loops})
            self._analyzers[key] = analyzer
        return analyzer.simplify(index)


class _Shrink(Mutator):
    def __init__(self, plans: dict[int, tuple[Buffer, list[PrimExpr]]]) -> None:
        super().__init__()
        self.plans = plans
        self.analyzer = Analyzer()

    def visit_For(self, loop: For) -> For:
        dom = loop.domain
        self.analyzer.bind(loop.loop_var, dom, True)
        return self.visit_default(loop)

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        plan = self.plans.get(id(buffer))
        return buffer if plan is None else plan[0]

    def visit_Allocate(self, stmt: Allocate) -> Allocate:
        body = self.visit(stmt.body)
        owned = _owned(stmt)
        plan = None if owned is None else self.plans.get(id(owned))
        if plan is None:
            return stmt.with_(body=body)
        return stmt.with_(extents=Array(allocation_extents(plan[0])), body=body)

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        return self.moved(self.visit_default(load), load)

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        return self.moved(self.visit_default(store), store)

    def moved(self, new: A, old: A) -> A:
        plan = self.plans.get(id(old.buffer))
        if plan is None:
            return new
        shifted = [op.subtract(i, s) for i, s in zip(new.indices, plan[1], strict=True)]
        return new.with_(indices=Array(shifted))

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        """Shift a region; if it is not proved to be inside of the buffer, take the whole buffer.

        Along a dimension that stays as it was, the region stays, too.
        """
        plan = self.plans.get(id(region.buffer))
        if plan is None:
            return region
        ranges = []
        sizes = zip(plan[0].shape, region.buffer.shape, strict=True)
        for dom, shift, (extent, before) in zip(region.region, plan[1], sizes, strict=True):
            if extent is before and is_const_int(shift, 0):
                ranges.append(dom)
                continue
            low = self.analyzer.simplify(op.subtract(dom.min, shift))
            high = op.add(low, dom.extent)
            inside = self.analyzer.can_prove(low >= 0) and self.analyzer.can_prove(high <= extent)
            ranges.append(Range.from_min_extent(low, dom.extent) if inside else Range(0, extent))
        return BufferRegion(plan[0], ranges)


def compact_buffer_allocation(func: PrimFunc, is_strict: bool = True) -> PrimFunc:
    """The function with its allocations compacted.

    With ``is_strict``, a buffer never grows. Without it, a buffer of unknown extent becomes as
    large as the region that one iteration of an outer loop accesses, which may be larger.
    """
    gather = _Gather()
    gather.visit(func.body)
    shared = gather.opaque | _pointers(func.body)
    bounds = _Bounds()
    plans: dict[int, tuple[Buffer, list[PrimExpr]]] = {}
    for key, usage in gather.usages.items():
        buffer = usage.buffer
        if key in gather.aligned and not buffer.strides and id(buffer.data) not in shared:
            shifts: list[PrimExpr] = [IntImm(extent.dtype, 0) for extent in buffer.shape]
            usage.plan = (buffer, shifts)
        if not usage.accesses or not usage.exact or buffer.strides:
            continue
        if id(buffer.data) in shared or not buffer.shape:
            continue
        usage.plan = _plan(usage, bounds, is_strict) or usage.plan
    for key, usage in gather.usages.items():
        if usage.plan is not None:
            buffer, shifts = usage.plan
            strides = _strides(buffer, gather.aligned.get(key, {}), bounds.analyzer)
            plans[key] = (buffer if strides is None else buffer.with_(strides=strides), shifts)
    return rewrite_body(func, _Shrink(plans)) if plans else func


def _alignments(block: Block) -> list[tuple[int, ...]]:
    """The entries ``[buffer, axis, factor, offset]`` of the annotation that storage_align adds."""
    alignments: list[tuple[int, ...]] = []
    for entry in block.annotations.get("buffer_dim_align", ()):
        numbers = tuple([int(getattr(item, "value", item)) for item in entry])
        if len(numbers) != 4 or numbers[2] < 1:
            raise IRValueError(
                f"buffer_dim_align of block {block.name_hint}: expected entries "
                f"[buffer, axis, factor, offset] with a factor of at least 1, got {list(numbers)}"
            )
        alignments.append(numbers)
    return alignments


def _strides(
    buffer: Buffer, aligned: dict[int, tuple[int, int]], analyzer: Analyzer
) -> Array[PrimExpr] | None:
    """Strides, of which that of each aligned axis is ``offset`` modulo ``factor``."""
    if not aligned:
        return None
    strides: list[PrimExpr] = []
    step: PrimExpr = op.const(1, buffer.shape[0].dtype)
    for axis in reversed(range(len(buffer.shape))):
        if axis in aligned:
            factor, offset = aligned[axis]
            step = step + (factor + offset - step % factor) % factor
        strides.append(analyzer.simplify(step))
        step = step * buffer.shape[axis]
    return Array(strides[::-1])


def _is_part(
    low: PrimExpr, count: int, extent: PrimExpr, analyzer: Analyzer, is_strict: bool
) -> bool:
    """Whether to keep only ``count`` elements from ``low`` on of a dimension.

    Unless ``is_strict``, that is also done if ``extent`` is unknown and ``low`` changes with an
    outer loop: the elements of one iteration, even though ``extent`` may be smaller than ``count``.
    """
    if not is_strict and not isinstance(extent, IntImm) and collect(low, Var):
        return True
    return analyzer.can_prove(op.const(count, extent.dtype) < extent)


def _plan(usage: _Usage, bounds: _Bounds, is_strict: bool) -> tuple[Buffer, list[PrimExpr]] | None:
    buffer = usage.buffer
    shape: list[PrimExpr] = []
    shifts: list[PrimExpr] = []
    for axis, extent in enumerate(buffer.shape):
        region = bounds.accessed(usage, axis)
        if region is None or not _is_part(*region, extent, bounds.analyzer, is_strict):
            shape.append(extent)
            shifts.append(IntImm(extent.dtype, 0))
        else:
            shape.append(IntImm(extent.dtype, region[1]))
            shifts.append(region[0])
    if all(new is old for new, old in zip(shape, buffer.shape, strict=True)):
        return None
    return buffer.with_(shape=Array(shape)), shifts


CompactBufferAllocation = define_pass("CompactBufferAllocation", compact_buffer_allocation)
