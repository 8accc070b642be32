"""The part of long tables of cases that `make test` runs.

`make test` gives ``--sample``, so that it ends within a quarter of an hour: a test that is marked
``sampled(share)`` then runs one of every ``share`` of its cases. `make slow`, and pytest without
that option, run all. ``sampled(share, by=function)`` takes the share, and at least one case, of
each group for which ``function(the case's parameters)`` is the same: of each operator, say.

    sampled(3), cases a b c d e f g  →  three of them, the same in every run
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import pytest


def is_sampled(config: pytest.Config) -> bool:
    """Whether this session runs a part of what is marked ``sampled``."""
    return bool(config.getoption("--sample"))


def left_out(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The items that a session with ``--sample`` does not run."""
    groups: dict[Hashable, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            groups[_group(item)].append(item)
    return {item for group in groups.values() for item in _beyond_the_share(group)}


def _group(item: pytest.Item) -> Hashable:
    """What the cases of one share have in common: the test, and what ``by`` says of the case."""
    marker = item.get_closest_marker("sampled")
    by = marker.kwargs.get("by") if marker is not None else None
    test = item.nodeid.partition("[")[0]
    case = getattr(item, "callspec", None)
    return (test, None if by is None or case is None else by(case.params))


def _beyond_the_share(group: Sequence[pytest.Item]) -> Iterable[pytest.Item]:
    marker = group[0].get_closest_marker("sampled")
    assert marker is not None
    (share,) = marker.args
    by_checksum = sorted(group, key=lambda item: (zlib.crc32(item.name.encode()), item.name))
    return by_checksum[-(-len(group) // share) :]
