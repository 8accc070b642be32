"""The reference of schedules shows every primitive."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.tir.schedule.instruction import InstructionKind
from weft.tir.schedule.schedule import Schedule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "schedule.md"


def methods() -> list[str]:
    of_schedule = [name for name in vars(Schedule) if not name.startswith("_")]
    kinds = {kind.method for kind in InstructionKind.REGISTRY.values()}
    return sorted({*of_schedule, *[name for name in kinds if hasattr(Schedule, name)]})


@pytest.mark.parametrize("method", methods())
def test_the_reference_shows(method):
    assert f"sch.{method}" in PAGE.read_text(encoding="utf-8")
