"""What is measured: one schedule of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.meta_schedule.arg_info import ArgInfo
from weft.tir.schedule.schedule import Schedule


class MeasureCandidate(NamedTuple):
    """A schedule to measure, and the arguments of its function."""

    sch: Schedule
    args_info: Sequence[ArgInfo]
