"""Mutators: each changes one decision of a trace."""

from weft.meta_schedule.mutator.base import Mutator, PyMutator
from weft.meta_schedule.mutator.mutate_compute_location import MutateComputeLocation
from weft.meta_schedule.mutator.mutate_parallel import MutateParallel
from weft.meta_schedule.mutator.mutate_thread_binding import MutateThreadBinding
from weft.meta_schedule.mutator.mutate_tile_size import MutateTileSize
from weft.meta_schedule.mutator.mutate_unroll import MutateUnroll

__all__ = [
    "MutateComputeLocation",
    "MutateParallel",
    "MutateThreadBinding",
    "MutateTileSize",
    "MutateUnroll",
    "Mutator",
    "PyMutator",
]
create = Mutator.create
