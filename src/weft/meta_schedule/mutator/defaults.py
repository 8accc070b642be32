"""The mutators that TVM uses for each kind of target, and how often."""

from __future__ import annotations

from weft.backends.cpu.search_kinds import SearchKind
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.mutator.mutate_compute_location import MutateComputeLocation
from weft.meta_schedule.mutator.mutate_parallel import MutateParallel
from weft.meta_schedule.mutator.mutate_thread_binding import MutateThreadBinding
from weft.meta_schedule.mutator.mutate_tile_size import MutateTileSize
from weft.meta_schedule.mutator.mutate_unroll import MutateUnroll


def for_hexagon() -> dict[Mutator, float]:
    """The mutators of Hexagon."""
    return {
        MutateTileSize(): 0.9,
        MutateComputeLocation(): 0.05,
        MutateUnroll(): 0.03,
        MutateParallel(max_jobs_per_core=16): 0.02,
    }


def for_cpu(cpu: SearchKind) -> dict[Mutator, float]:  # noqa: ARG001 - one for all
    """The mutators of CPUs."""
    return for_hexagon()


def for_gpu() -> dict[Mutator, float]:
    """The mutators of GPUs."""
    return {MutateTileSize(): 0.9, MutateUnroll(): 0.08, MutateThreadBinding(): 0.02}


def for_tensor_cores() -> dict[Mutator, float]:
    """The mutators of GPUs with tensor cores."""
    return for_gpu()
