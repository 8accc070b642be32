"""Rare collections: fewer inside of a block, the user's thresholds before and after it."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from weft.ir import IRModule
from weft.ir.transform import module_pass
from weft.support.garbage import CONTAINERS, rare_collections


@pytest.fixture(autouse=True)
def usual_threshold() -> Iterator[None]:
    """CPython's own threshold, whatever ran before; collections pass over what that has left."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def collections_of(containers: int) -> int:
    """How many collections the allocation of some containers starts."""
    starts = []

    def note(phase: str, _: object) -> None:
        if phase == "start":
            starts.append(phase)

    gc.callbacks.append(note)
    try:
        kept = [[] for _ in range(containers)]
    finally:
        gc.callbacks.remove(note)
    assert len(kept) == containers
    return len(starts)


def test_collections_are_rare_in_a_block_and_bounded() -> None:
    gc.collect()
    assert collections_of(CONTAINERS // 2) > 50
    gc.collect()
    with rare_collections:
        assert collections_of(CONTAINERS // 2) == 0
        gc.collect()
        assert 2 <= collections_of(3 * CONTAINERS) <= 4


def test_blocks_nest() -> None:
    with rare_collections:
        with rare_collections:
            pass
        assert gc.get_threshold()[0] == CONTAINERS
    assert gc.get_threshold()[0] == 700


def test_the_threshold_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="in the block"), rare_collections:
        raise ValueError("in the block")
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize("chosen", [0, 5 * CONTAINERS])
def test_a_user_who_collects_less_is_left_alone(chosen: int) -> None:
    gc.set_threshold(chosen)
    with rare_collections:
        assert gc.get_threshold()[0] == chosen
    assert gc.get_threshold()[0] == chosen


def test_a_threshold_set_inside_stays() -> None:
    with rare_collections:
        gc.set_threshold(1234)
    assert gc.get_threshold()[0] == 1234


def test_passes_run_with_rare_collections() -> None:
    met = []

    @module_pass(opt_level=0)
    def look(mod: IRModule, _: object) -> IRModule:
        met.append(gc.get_threshold()[0])
        return mod

    look(IRModule())
    assert met == [CONTAINERS]
    assert gc.get_threshold()[0] == 700
