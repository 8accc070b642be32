"""What hears of measurements."""

from weft.meta_schedule.measure_callback.callbacks import (
    AddToDatabase,
    RemoveBuildArtifact,
    UpdateCostModel,
    create,
)
from weft.meta_schedule.task_scheduler.base import MeasureCallback

PyMeasureCallback = MeasureCallback
__all__ = [
    "AddToDatabase",
    "MeasureCallback",
    "PyMeasureCallback",
    "RemoveBuildArtifact",
    "UpdateCostModel",
    "create",
]
