"""The loops around a statement, by what runs them."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from weft.ir.expr import IntImm
from weft.tir.stmt import For, ForKind
from weft.tir.store_features.numbers import extent_of, slog

UNROLL_PRAGMA: Final = "pragma_auto_unroll_max_step"
THREADS: Final = (
    "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z",
    "vthread",
)  # fmt: skip
_POSITIONS: Final = 8
"""Where loops of a kind may stand; this extractor tells only "none" and "mixed" apart."""


class LoopNest(NamedTuple):
    """Loops from the outermost to the innermost."""

    loops: tuple[For, ...] = ()

    @property
    def product(self) -> int:
        """How often the statement runs."""
        return math.prod([extent_of(loop) for loop in self.loops])

    def of_kind(self, kind: ForKind) -> list[For]:
        """The loops of a kind."""
        return [loop for loop in self.loops if loop.kind == kind]

    def bound_to(self, thread: str) -> list[For]:
        """The loops bound to an axis of threads."""
        return [
            loop
            for loop in self.loops
            if loop.thread_binding is not None
            and (loop.thread_binding.thread_tag.split(".")[0] if thread == "vthread" else
                 loop.thread_binding.thread_tag) == thread
        ]  # fmt: skip

    @property
    def unroll_step(self) -> int:
        """The innermost limit of automatic unrolling; 0 if there is none."""
        steps = [step for loop in self.loops if (step := _unroll_step(loop)) > 0]
        return steps[-1] if steps else 0


def _unroll_step(loop: For) -> int:
    value = loop.annotations.get(UNROLL_PRAGMA)
    return value.value if isinstance(value, IntImm) else value if isinstance(value, int) else -1


def kind_features(loops: list[For]) -> list[float]:
    """Number, product and innermost extent of the loops of a kind, and where they stand."""
    position = [0.0] * _POSITIONS
    position[_POSITIONS - 1 if loops else 0] = 1.0
    if not loops:
        return [0.0, 0.0, 0.0, *position]
    extents = [extent_of(loop) for loop in loops]
    return [slog(len(loops)), slog(math.prod(extents)), slog(extents[-1]), *position]


def thread_features(nest: LoopNest, *, is_gpu: bool) -> list[float]:
    """Whether this is a GPU, and the extent of each axis of its threads."""
    if not is_gpu:
        return [0.0] + [slog(1)] * len(THREADS)
    bound = [nest.bound_to(thread) for thread in THREADS]
    return [1.0, *[slog(extent_of(loops[0]) if loops else 1) for loops in bound]]


def outer_features(nest: LoopNest) -> list[float]:
    """How often the statement runs, how many loops do that, and the limit of unrolling."""
    return [slog(nest.product), slog(len(nest.loops)), slog(nest.unroll_step)]
