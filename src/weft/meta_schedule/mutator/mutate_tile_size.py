"""Moving a factor from one tile to another, or choosing another length of a vector."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial

from weft.meta_schedule.annotations import COOPERATIVE_FETCH
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.mutator.categorical import (
    annotated_choices,
    probabilities,
    with_other_choice,
)
from weft.tir.schedule.instruction import Instruction
from weft.tir.schedule.primitive.tilings import divisors
from weft.tir.schedule.trace import Trace


class MutateTileSize(Mutator):
    """Changes one ``sample_perfect_tile``, or one length of the vectors in which threads copy."""

    def apply(self, trace: Trace) -> Trace | None:
        """A trace with other tiles; None if it samples none that could be others."""
        changes: list[Callable[[], Trace | None]] = [
            partial(_with_moved_factor, trace, inst, self.random)
            for inst in trace.insts
            if inst in trace.decisions and _is_tiling(inst, trace)
        ]
        changes += [
            partial(with_other_choice, trace, inst, self.random) for inst in _vector_lengths(trace)
        ]
        return self.random.choice(changes)() if changes else None


def _tiles(inst: Instruction, trace: Trace) -> list[int]:
    decision = trace.decisions[inst]
    assert isinstance(decision, Sequence)
    return [int(str(getattr(item, "value", item))) for item in decision]


def _is_tiling(inst: Instruction, trace: Trace) -> bool:
    if inst.kind.name != "SamplePerfectTile":
        return False
    tiles = _tiles(inst, trace)
    return len(tiles) >= 2 and math.prod(tiles) >= 2


def _with_moved_factor(trace: Trace, inst: Instruction, generator: random.Random) -> Trace | None:
    """The trace in which a factor of one tile has moved to another.

    The last tile stays within the limit that the instruction sets.
    """
    tiles = _tiles(inst, trace)
    limit = int(str(inst.attrs[1]))
    last = len(tiles) - 1
    moves = {}
    for source, size in enumerate(tiles):
        for target in range(len(tiles)):
            room = limit // tiles[last] if target == last and limit != -1 else size
            factors = [item for item in divisors(size) if 1 < item <= room]
            if factors and source != target:
                moves[source, target] = factors
    if not moves:
        return None
    source, target = generator.choice(list(moves))
    factor = generator.choice(moves[source, target])
    tiles[source] //= factor
    tiles[target] *= factor
    return trace.with_decision(inst, tiles, remove_postproc=True)


def _vector_lengths(trace: Trace) -> list[Instruction]:
    """The choices of how many elements a thread copies at once."""
    choices = annotated_choices(trace, COOPERATIVE_FETCH)
    return [inst for inst in choices if len(probabilities(inst)) > 1]
