"""What a task scheduler is: it shares trials between tasks, builds and measures them."""

from __future__ import annotations

from weft.meta_schedule.protocols import Part


class TaskScheduler(Part):
    """Tunes several tasks; those that derive from it choose which is next."""
