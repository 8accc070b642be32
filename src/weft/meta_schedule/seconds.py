"""Times as records and results of measurements hold them."""

from __future__ import annotations

from collections.abc import Iterable


class Seconds(float):
    """A number of seconds. TVM's users write ``secs.value`` for it: there it is a node.

    >>> Seconds(0.5).value + Seconds(1.0)
    1.5
    """

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number."""
        return float(self)


def as_seconds(times: Iterable[float] | None) -> tuple[Seconds, ...] | None:
    """Each time as Seconds; nodes of TVM's users (FloatImm) count by their value."""
    if times is None:
        return None
    return tuple([Seconds(getattr(time, "value", time)) for time in times])
