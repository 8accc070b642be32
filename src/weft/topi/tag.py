"""The tags of operators' computations, which say what kind of computation a stage is."""

from __future__ import annotations

from typing import Final

ELEMWISE: Final = "elemwise"
BROADCAST: Final = "broadcast"
INJECTIVE: Final = "injective"
COMM_REDUCE: Final = "comm_reduce"
COMM_REDUCE_IDX: Final = "comm_reduce_idx"


def is_injective(tag: str) -> bool:
    """Whether every output element depends on one element of each input."""
    return tag in (ELEMWISE, BROADCAST) or tag.startswith(INJECTIVE)


def is_broadcast(tag: str) -> bool:
    """Whether the computation is element-wise, with broadcasting."""
    return tag in (ELEMWISE, BROADCAST)
