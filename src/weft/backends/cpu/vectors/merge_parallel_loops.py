"""MergeParallelLoops: two neighbours that share a partition are one parallel loop.

Before::

    for i in T.parallel(8):
        for j in range(48):
            Q[i * 48 + j] = A[i * 48 + j] * T.float32(2)
    for i in T.parallel(8):
        for j in range(48):
            K[i * 48 + j] = Q[i * 48 + j] + T.float32(1)

After: one ``for i in T.parallel(8)`` with both bodies. Between two parallel loops all threads wait
for each other. Here iteration ``i`` of the second reads only what iteration ``i`` of the first
wrote, so they need not. Loops that pass nothing to each other may have different extents: both are
cut into the same number of parts, and each iteration of the new loop runs a part of the first and
then a part of the second.

The idea is the fusion of loops with equal bounds (Kennedy and McKinley, "Maximizing Loop
Parallelism and Improving Data Locality via Loop Fusion and Distribution", 1993). Dependences are
tested by slabs: the part of a buffer's axis that an iteration touches
(``weft.tir.analysis.loop_slabs``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from weft.ir.expr import IntImm
from weft.ir.functor import substitute
from weft.ir.structural import structural_equal
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.tir import op
from weft.tir.analysis.loop_slabs import LoopAccesses, Slab, bytes_of, loop_accesses
from weft.tir.constant import is_const_int
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize, For, ForKind, SeqStmt, Stmt, seq
from weft.tir.transform.prim_func_pass import define_pass

Key = Hashable
"""The identity of a buffer: its data variable, or whatever stands for it in a graph."""


@dataclass(frozen=True)
class Partition:
    """The iterations of a parallel loop, and the memory that each of them has to itself."""

    extent: int
    slabs: Mapping[Key, frozenset[Slab]]
    written: frozenset[Key]
    sizes: Mapping[Key, int]
    """Bytes of each buffer in memory."""
    annotations: Any = None
    """The annotations of the loop."""

    def in_parts(self, count: int) -> Partition:
        """The same loop with ``count`` iterations, each of which does several of the old ones."""
        times = self.extent // count
        slabs = {
            key: frozenset([slab.times(times) for slab in several])
            for key, several in self.slabs.items()
        }
        annotations = self.annotations if times == 1 else None
        return Partition(count, slabs, self.written, self.sizes, annotations)

    def and_then(self, other: Partition) -> Partition:
        """The partition of one loop that does both; ``other`` has as many iterations."""
        slabs = dict(self.slabs)
        for key, other_slabs in other.slabs.items():
            slabs[key] = slabs[key] & other_slabs if key in slabs else other_slabs
        written, sizes = self.written | other.written, {**self.sizes, **other.sizes}
        return Partition(self.extent, slabs, written, sizes, self.annotations)

    def read_by_all(self) -> set[Key]:
        """The buffers of which every iteration may touch any element."""
        return {key for key, slabs in self.slabs.items() if not slabs}


def partition_of(loop: For, accesses: LoopAccesses, names: Mapping[Var, Key]) -> Partition:
    """The partition of a loop with these accesses; ``names`` gives the keys of buffers."""
    sizes = {
        data: 0 if buffer.scope() == "local" else bytes_of(buffer)
        for data, buffer in accesses.buffers.items()
    }
    return Partition(
        extent_of(loop),
        {names.get(data, data): slabs for data, slabs in accesses.slabs.items()},
        frozenset([names.get(data, data) for data in accesses.written]),
        {names.get(data, data): size for data, size in sizes.items()},
        loop.annotations,
    )


def shared_partition(first: Partition, second: Partition, machine: Machine) -> Partition | None:
    """The partition of a loop that does what two loops do; None if they cannot or should not merge.

    They should not if what all iterations read no longer fits half of the second cache.
    """
    touched = first.slabs.keys() & second.slabs.keys()
    passed = touched & (first.written | second.written)
    parts = _parts(first.extent, second.extent, bool(passed), machine.cores)
    if parts is None:
        return None
    before, after = first.in_parts(parts), second.in_parts(parts)
    both = before.and_then(after)
    is_said_of_both = structural_equal(before.annotations or {}, after.annotations or {})
    if not is_said_of_both or not all(both.slabs[key] for key in passed):
        return None
    everywhere = [
        sum(each.sizes.get(key, 0) for key in each.read_by_all()) for each in (before, after, both)
    ]
    is_kept = everywhere[2] <= machine.l2 // 2
    return both if is_kept or everywhere[2] - max(everywhere[:2]) <= machine.l1 else None


def _parts(first: int, second: int, depends: bool, cores: int) -> int | None:
    """How many iterations a loop has that does what two loops of ``first`` and ``second`` do.

    If the second depends on the first, iterations are as short as possible, so that what is written
    is read soon. If not, they are as long as possible, so that each goes on with what is in its
    caches; but each core has at least two, so that another core may take one over.
    """
    common = math.gcd(first, second)
    if depends:
        return common if common == min(first, second) else None
    parts = [n for n in range(2 * cores, common + 1, cores) if common % n == 0]
    if parts:
        return parts[0]
    return first if first == second else None


def merged(first: For, second: For, both: Partition) -> For:
    """The parallel loop that does what two loops do, by the partition ``both``."""
    var = Var(first.loop_var.name, first.loop_var.dtype)
    bodies = [_part(loop, var, both.extent) for loop in (first, second)]
    extent = IntImm(first.extent.dtype, both.extent)
    return first.with_(loop_var=var, extent=extent, body=seq(*bodies), annotations=both.annotations)


def _part(loop: For, var: Var, parts: int) -> Stmt:
    """Iteration ``var`` of ``parts`` of a loop."""
    times = extent_of(loop) // parts
    here = op.cast(loop.loop_var.dtype, var)
    if times == 1:
        return substitute(loop.body, {loop.loop_var: here})
    inner = Var(f"{loop.loop_var.name}_inner", loop.loop_var.dtype)
    body = substitute(loop.body, {loop.loop_var: here * times + inner})
    return loop.with_(
        loop_var=inner, extent=IntImm(loop.extent.dtype, times), kind=ForKind.SERIAL, body=body
    )


def parallel_loop(stmt: Any) -> For | None:
    """The statement itself, if it is a parallel loop from 0 to a constant; else None."""
    if not isinstance(stmt, For) or stmt.kind is not ForKind.PARALLEL or stmt.thread_binding:
        return None
    starts = is_const_int(stmt.min, 0)
    return stmt if starts and extent_of(stmt) > 0 else None


def extent_of(loop: For) -> int:
    """The number of iterations; 0 if it is not constant."""
    return int(loop.extent.value) if isinstance(loop.extent, IntImm) else 0


def statements(func: PrimFunc) -> Sequence[Stmt]:
    """The statements of a function's body, or of its root block if it has one."""
    body = func.body.block.body if isinstance(func.body, BlockRealize) else func.body
    return list(body.seq) if isinstance(body, SeqStmt) else [body]


def merge_parallel_loops(func: PrimFunc) -> PrimFunc:
    """Merge neighbours among the outermost parallel loops of a function."""
    if not func.attrs.get("tir.noalias"):  # two parameters may be one buffer
        return func
    machine = machine_of(func.attrs.get("target") or Target.current())
    result: list[Stmt] = []
    known: Partition | None = None
    for stmt in statements(func):
        loop = parallel_loop(stmt)
        mine = None if loop is None else partition_of(loop, loop_accesses(loop), {})
        both = shared_partition(known, mine, machine) if known and mine else None
        if both is None:
            result.append(stmt)
            known = mine
        else:
            result[-1] = merged(cast(For, result[-1]), cast(For, stmt), both)
            known = both
    return func if len(result) == len(statements(func)) else _with_statements(func, result)


def _with_statements(func: PrimFunc, stmts: Sequence[Stmt]) -> PrimFunc:
    body = seq(*stmts)
    if not isinstance(func.body, BlockRealize):
        return func.with_(body=body)
    return func.with_(body=func.body.with_(block=func.body.block.with_(body=body)))


MergeParallelLoops = define_pass("MergeParallelLoops", merge_parallel_loops)
