"""A row of numbers for each buffer that a scheduled program computes: the features of Ansor
(Zheng et al., "Ansor: generating high-performance tensor programs for deep learning", OSDI 2020).

A row has, for the last store to a buffer: its operations and loops (57 numbers), its accesses (18
for each buffer), a curve of arithmetic intensity over the loops, the allocation of the buffer (4),
and what is around the store (3). Counts and sizes are logarithms.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import Mutator, Visitor, contains
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore, For, ForKind, Stmt
from weft.tir.store_features import access, arithmetic
from weft.tir.store_features.intensity import intensity_curve
from weft.tir.store_features.loop_nest import (
    LoopNest,
    kind_features,
    outer_features,
    thread_features,
)
from weft.tir.store_features.numbers import shape_of, slog
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.tir.transform.lower_init_block import LowerInitBlock
from weft.tir.transform.lower_match_buffer import LowerMatchBuffer
from weft.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.prim_func_pass import define_pass
from weft.tir.transform.remove_weight_layout_rewrite_block import RemoveWeightLayoutRewriteBlock
from weft.tir.transform.simplify import Simplify
from weft.tir.transform.threads.cross_thread_reduction import LowerCrossThreadReduction
from weft.tir.transform.threads.unify_thread_binding import UnifyThreadBinding

_STORE: Final = len(arithmetic.ORDER) + 3 * 11 + 8
_ALLOCATION, _OUTER = 4, 3


class RowLayout(NamedTuple):
    """What a row has.

    Attributes:
        buffers: buffers of a store that are described, those with most cache lines.
        intensities: points of the curve of operations per byte.
        cache_line_bytes: bytes of a line of the cache.

    >>> RowLayout().length
    164
    """

    buffers: int = 5
    intensities: int = 10
    cache_line_bytes: int = 64

    @property
    def length(self) -> int:
        """The numbers of a row."""
        return _STORE + access.COUNT * self.buffers + self.intensities + _ALLOCATION + _OUTER


USUAL_LAYOUT: Final = RowLayout()


class _Simplifier(Mutator):
    """Drops loops of one iteration, and takes choices without loads for the constant 1."""

    def __init__(self) -> None:
        self.unit_vars: set[Var] = set()

    def visit_Select(self, node: Select) -> PrimExpr:
        if any(contains(part, BufferLoad) for part in (node.true_value, node.false_value)):
            return node
        if contains(node.condition, BufferLoad):
            return node
        return op.const(1, node.dtype)

    def visit_Var(self, var: Var) -> PrimExpr:
        return op.const(0, var.dtype) if var in self.unit_vars else var

    def visit_For(self, loop: For) -> Stmt:
        is_unit = (
            is_const_int(loop.min, 0)
            and is_const_int(loop.extent, 1)
            and loop.kind == ForKind.SERIAL
        )
        if is_unit and not loop.annotations:
            self.unit_vars.add(loop.loop_var)
            return self.visit(loop.body)
        return self.visit_default(loop)


def _simplified(func: PrimFunc) -> PrimFunc:
    """The function without what features should not depend on."""
    return func.with_(body=_Simplifier().visit(func.body))


SimplifyForFeatureExtraction = define_pass("SimplifyForFeatureExtraction", _simplified)


LOWERING: Final = Sequential([
    RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=True),
    SimplifyForFeatureExtraction(),
    LowerCrossThreadReduction(),
    PlanAndUpdateBufferAllocationLocation(),  # it has to know which stores are initial values
    LowerInitBlock(),
    ConvertBlocksToOpaque(),  # indices in terms of loops
    CompactBufferAllocation(),
    Simplify(),
    UnifyThreadBinding(),
    LowerMatchBuffer(),
    Simplify(),
])  # fmt: skip
"""From a scheduled program to loops around stores, with allocations where they are used."""


class _Collector(Visitor):
    """Walks a function; ``rows`` has the features of each buffer, in the order of first stores."""

    def __init__(self, layout: RowLayout, is_gpu: bool) -> None:
        self.layout, self.is_gpu = layout, is_gpu
        self.nest = LoopNest()
        self.touched = access.Touched()
        self.rows: dict[Buffer, tuple[list[float], int]] = {}
        self.allocations: dict[Buffer, tuple[int, int]] = {}
        """Elements of a buffer, and how often it is allocated."""

    def visit_For(self, loop: For) -> None:
        outer, self.nest = self.nest, LoopNest((*self.nest.loops, loop))
        self.visit(loop.body)
        self.nest = outer

    def visit_Block(self, block: Block) -> None:
        self.visit(block.body)
        for buffer in block.alloc_buffers:
            self.allocate(buffer)

    def allocate(self, buffer: Buffer) -> None:
        """Note an allocation here."""
        self.allocations[buffer] = math.prod(shape_of(buffer, {})), self.nest.product

    def visit_BufferStore(self, store: BufferStore) -> None:
        if isinstance(store.value, (IntImm, FloatImm)):
            return  # an initial value says nothing
        nest, layout = self.nest, self.layout
        counts = arithmetic.count_operations(store.value)
        accesses, loop_bytes = access.access_features(
            access.accesses_of(store),
            nest,
            self.touched,
            layout.cache_line_bytes,
            layout.buffers,
        )
        row = [
            *arithmetic.arithmetic_features(counts, nest.product),
            *kind_features(nest.of_kind(ForKind.VECTORIZED)),
            *kind_features(nest.of_kind(ForKind.UNROLLED)),
            *kind_features(nest.of_kind(ForKind.PARALLEL)),
            *thread_features(nest, is_gpu=self.is_gpu),
            *accesses,
            *intensity_curve(
                nest,
                loop_bytes,
                arithmetic.float_operations(counts),
                layout.intensities,
            ),
        ]
        outer = outer_features(nest)
        # The features of the allocation stand between these two, and need the whole program.
        self.rows[store.buffer] = [*row, *outer], nest.product

    def result(self) -> list[list[float]]:
        """The rows, with the features of allocations."""
        return [
            [*row[:-_OUTER], *self._allocation(buffer, runs), *row[-_OUTER:]]
            for buffer, (row, runs) in self.rows.items()
        ]

    def _allocation(self, buffer: Buffer, runs: int) -> list[float]:
        elements, outer = self.allocations.get(buffer, (0, 1))
        width = buffer.dtype.bits * buffer.dtype.lanes // 8
        product = elements * outer if buffer in self.allocations else 0
        return [slog(elements * width), slog(product), slog(outer), slog(runs / (outer or 1))]


@deep_recursion
def store_features(
    mod: IRModule, layout: RowLayout = USUAL_LAYOUT, *, is_gpu: bool = False
) -> list[list[float]]:
    """A row of features for each buffer that the PrimFuncs of a scheduled module compute."""
    collector = _Collector(layout, is_gpu)
    for function in LOWERING(mod).functions.values():
        if isinstance(function, PrimFunc):
            collector.visit(function.body)
            for buffer in function.buffer_map.values():
                collector.allocate(buffer)
    return collector.result()
