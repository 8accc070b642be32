"""``derived_object``, by which TVM's users mark classes that they derive from parts of tuning."""

from __future__ import annotations

from typing import TypeVar

from weft.meta_schedule.protocols import Part
from weft.support.errors import IRTypeError

_Class = TypeVar("_Class", bound=type)


def derived_object(cls: _Class) -> _Class:
    """Mark a class of the user that derives from a part of tuning; returns the class itself.

    In TVM such a class needs a bridge to C++. Here it works as it is, so the mark only checks that
    there is a part to derive from.

    >>> from weft.meta_schedule.schedule_rule import PyScheduleRule
    >>> @derived_object
    ... class Nothing(PyScheduleRule):
    ...     def apply(self, sch, block):
    ...         return [sch]
    """
    if not issubclass(cls, Part):
        raise IRTypeError(
            f"derived_object: {cls.__name__} derives from no part of tuning; derive it from "
            "PyScheduleRule, PyPostproc, PyMutator, PyCostModel, PyDatabase, PyBuilder, PyRunner, "
            "PySearchStrategy, PySpaceGenerator, PyTaskScheduler or PyMeasureCallback"
        )
    return cls
