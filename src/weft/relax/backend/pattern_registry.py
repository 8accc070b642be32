"""The patterns that backends offer, by name: ``cublas.matmul``, ``dnnl.conv2d_relu``.

A backend registers its patterns when it is imported; a pass that partitions a module for it asks
for the patterns whose names begin with the backend's. A pattern registered later is tried earlier,
so a list goes from general patterns to special ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.relax.transform.fusion.fuse_ops_by_pattern import (
    FusionPattern,
    FusionPatternLike,
    as_fusion_pattern,
)
from weft.support.registration import refuse_second

_REGISTERED: list[FusionPattern] = []


def register_patterns(patterns: Sequence[FusionPatternLike], *, override: bool = False) -> None:
    """Register FusionPatterns or tuples of their arguments; later ones have higher priority.

    Raises:
        IRValueError: a name is taken, and ``override`` is not given.
    """
    new = [as_fusion_pattern(item) for item in patterns]
    for item in new:
        refuse_second("the pattern", item.name, get_pattern(item.name) is not None, override)
    remove_patterns([item.name for item in new])
    _REGISTERED.extend(new)


def remove_patterns(names: Iterable[str]) -> None:
    """Remove the patterns of these names."""
    gone = set(names)
    _REGISTERED[:] = [item for item in _REGISTERED if item.name not in gone]


def get_patterns_with_prefix(prefix: str) -> list[FusionPattern]:
    """The patterns whose names begin with ``prefix``, highest priority first."""
    return [item for item in reversed(_REGISTERED) if item.name.startswith(prefix)]


def get_pattern(name: str) -> FusionPattern | None:
    """The pattern of that name that was registered last, or None."""
    return next((item for item in reversed(_REGISTERED) if item.name == name), None)
