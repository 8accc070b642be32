"""The tags that operators give their computations: what kind of work a stage does."""

from __future__ import annotations

from typing import Final

ELEMWISE: Final = "elemwise"
BROADCAST: Final = "broadcast"
INJECTIVE: Final = "injective"
COMM_REDUCE: Final = "comm_reduce"
COMM_REDUCE_IDX: Final = "comm_reduce_idx"


def is_injective(tag: str) -> bool:
    """Whether every output element depends on one place of each input."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith(INJECTIVE)


def is_broadcast(tag: str) -> bool:
    """Whether the computation is element by element, up to broadcasting."""
    return tag in (ELEMWISE, BROADCAST)
