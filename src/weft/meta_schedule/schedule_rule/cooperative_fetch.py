"""How many elements each thread copies at once into a cache of a block of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.meta_schedule.annotations import COOPERATIVE_FETCH
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule

_FITS: Final[dict[str, Callable[[int], bool]]] = {
    "float32": lambda count: count <= 4,
    "float16": lambda count: count <= 8 and (count == 1 or count % 2 == 0),
    "int8": lambda count: count <= 16,
}
"""Data type -> whether a load of so many elements is one of the machine's (16 bytes at most)."""


def annotate_fetch(sch: Schedule, block: BlockRV, lengths: Sequence[int]) -> None:
    """Choose a length of vectors that fits the data and mark a block that copies with it.

    ``RewriteCooperativeFetch`` acts on the mark. Nothing is marked where no length is given.
    """
    dtype = str(sch.get(block).writes[0].buffer.dtype)
    fits = _FITS.get(dtype)
    chosen = [length for length in lengths if fits is None or fits(length)]
    if chosen:
        length = sch.sample_categorical(chosen, [1.0 / len(chosen)] * len(chosen))
        sch.annotate(block, COOPERATIVE_FETCH, length)
