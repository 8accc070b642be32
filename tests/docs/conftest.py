"""Operators that a recipe registers go again, so that other tests see those of weft only."""

from __future__ import annotations

import pytest

from weft.ir.op import Op
from weft.relax.op.definition import FUNCTIONS


@pytest.fixture(autouse=True)
def only_our_operators():
    kept = [(table, dict(table)) for table in (Op._registry, FUNCTIONS)]
    yield
    for table, before in kept:
        table.clear()
        table.update(before)
