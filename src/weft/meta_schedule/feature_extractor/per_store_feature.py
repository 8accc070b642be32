"""Features of each buffer that a program computes: those of Ansor (OSDI 2020), as TVM has them.

A row has, for the last store to a buffer: its operations and loops (57 numbers), its accesses (18
for each buffer), a curve of arithmetic intensity over the loops, the allocation of the buffer (4),
and what is around the store (3). Counts and sizes are logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.functor import Mutator, Visitor, collect, contains
from weft.ir.module import IRModule
from weft.ir.transform import FunctionPass, Sequential
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.feature_extractor import access, arithmetic
from weft.meta_schedule.feature_extractor.base import FeatureExtractor
from weft.meta_schedule.feature_extractor.intensity import intensity_curve
from weft.meta_schedule.feature_extractor.loop_nest import (
    LoopNest,
    kind_features,
    outer_features,
    thread_features,
)
from weft.meta_schedule.feature_extractor.numbers import shape_of, slog
from weft.meta_schedule.protocols import Context
from weft.runtime.ndarray import NDArray, array
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore, For, ForKind, Stmt
from weft.tir.transform.compact_buffer_allocation import CompactBufferAllocation
from weft.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque
from weft.tir.transform.lower_init_block import LowerInitBlock
from weft.tir.transform.lower_match_buffer import LowerMatchBuffer
from weft.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation
from weft.tir.transform.prim_func_pass import make_pass
from weft.tir.transform.remove_weight_layout_rewrite_block import RemoveWeightLayoutRewriteBlock
from weft.tir.transform.simplify import Simplify
from weft.tir.transform.threads.cross_thread_reduction import LowerCrossThreadReduction
from weft.tir.transform.threads.unify_thread_binding import UnifyThreadBinding

_STORE: Final = len(arithmetic.ORDER) + 3 * 11 + 8
_ALLOCATION, _OUTER, _WORKLOAD = 4, 3, 8
_NAMES: Final = (
    ("softmax",), ("max", "min"), ("add",), ("batch_matmul",), ("matmul",), ("depthwiseconv2d",),
    ("conv2d_winograd",), ("conv2",),
)  # fmt: skip
"""What a block's name tells of its workload; the first that fits counts."""


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
            body: Stmt = self.visit(loop.body)
            return body
        result: Stmt = self.visit_default(loop)
        return result


def _simplified(func: PrimFunc) -> PrimFunc:
    return func.with_(body=_Simplifier().visit(func.body))


def SimplifyForFeatureExtraction() -> FunctionPass:  # noqa: N802 - TVM's name
    """The pass that drops what features should not depend on."""
    return make_pass("SimplifyForFeatureExtraction", _simplified)


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

    def __init__(self, extractor: PerStoreFeature, is_gpu: bool) -> None:
        self.extractor, self.is_gpu = extractor, is_gpu
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
        nest, extractor = self.nest, self.extractor
        counts = arithmetic.count_operations(store.value)
        accesses, loop_bytes = access.access_features(
            access.accesses_of(store),
            nest,
            self.touched,
            extractor.cache_line_bytes,
            extractor.buffers_per_store,
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
                extractor.arith_intensity_curve_num_samples,
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


class PerStoreFeature(FeatureExtractor):
    """Describes a candidate by a row for each buffer that it stores to, of float64.

    Args:
        buffers_per_store: buffers of a store that are described, those with most cache lines.
        arith_intensity_curve_num_samples: points of the curve of operations per byte.
        cache_line_bytes: bytes of a line of the cache.
        extract_workload: add 8 numbers that tell the kind of the task by names of blocks.

    A row has ``feature_vector_length`` numbers. The features are those of Ansor: Zheng et al.,
    "Ansor: generating high-performance tensor programs for deep learning", OSDI 2020.
    """

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        self.buffers_per_store = buffers_per_store
        self.arith_intensity_curve_num_samples = arith_intensity_curve_num_samples
        self.cache_line_bytes = cache_line_bytes
        self.extract_workload = extract_workload
        self.feature_vector_length = (
            _STORE + access.COUNT * buffers_per_store + arith_intensity_curve_num_samples
            + _ALLOCATION + _OUTER + (_WORKLOAD if extract_workload else 0)
        )  # fmt: skip

    def extract_from(
        self, context: Context, candidates: Sequence[MeasureCandidate]
    ) -> list[NDArray]:
        if context.target is None:
            raise IRValueError("PerStoreFeature: expected a context with a target, found none")
        is_gpu = "gpu" in context.target.keys
        suffix: list[float] = []
        if self.extract_workload:
            if context.mod is None:
                raise IRValueError("PerStoreFeature: expected a context with a module, found none")
            suffix = workload_embedding(context.mod)
        return [self._matrix(candidate.sch.mod, is_gpu, suffix) for candidate in candidates]

    def _matrix(self, mod: IRModule, is_gpu: bool, suffix: list[float]) -> NDArray:
        rows = [[*row, *suffix] for row in self.rows_of(mod, is_gpu=is_gpu)]
        return array(np.array(rows, np.float64).reshape(len(rows), self.feature_vector_length))

    @deep_recursion
    def rows_of(self, mod: IRModule, *, is_gpu: bool = False) -> list[list[float]]:
        """The rows of a scheduled module, without those numbers that tell the kind of its task."""
        collector = _Collector(self, is_gpu)
        for function in LOWERING(mod).functions.values():
            if isinstance(function, PrimFunc):
                collector.visit(function.body)
                for buffer in function.buffer_map.values():
                    collector.allocate(buffer)
        return collector.result()


def workload_embedding(mod: IRModule) -> list[float]:
    """Eight numbers, 0 or 1: which kinds of operators the names of blocks tell of."""
    embedding = [0.0] * _WORKLOAD
    for function in mod.functions.values():
        for block in collect(function, Block):
            name = block.name_hint.lower()
            for number, words in enumerate(_NAMES):
                if any(word in name for word in words):
                    embedding[number] = 1.0
                    break
    return embedding
