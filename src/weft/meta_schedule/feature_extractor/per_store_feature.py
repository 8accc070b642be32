"""The features of each buffer that a program computes, as MetaSchedule's cost models take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.meta_schedule.candidate import MeasureCandidate
from weft.meta_schedule.feature_extractor.base import FeatureExtractor
from weft.meta_schedule.protocols import Context
from weft.runtime.ndarray import NDArray, array
from weft.support.errors import IRValueError
from weft.tir.stmt import Block
from weft.tir.store_features.rows import RowLayout, store_features

_WORKLOAD: Final = 8
_NAMES: Final = (
    ("softmax",), ("max", "min"), ("add",), ("batch_matmul",), ("matmul",), ("depthwiseconv2d",),
    ("conv2d_winograd",), ("conv2",),
)  # fmt: skip
"""What a block's name tells of its workload; the first that fits counts."""


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
        self._layout = RowLayout(
            buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes
        )
        self.feature_vector_length = self._layout.length + (_WORKLOAD if extract_workload else 0)

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
        rows = [[*row, *suffix] for row in store_features(mod, self._layout, is_gpu=is_gpu)]
        return array(np.array(rows, np.float64).reshape(len(rows), self.feature_vector_length))


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
