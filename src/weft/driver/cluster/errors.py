"""What goes wrong with machines of a cluster, rather than in the jobs that they do."""

from __future__ import annotations

from weft.support.errors import UnsupportedError


class NoMachineError(UnsupportedError):
    """A job was not begun: there is no machine of its kind."""


class JobLostError(UnsupportedError):
    """A job was begun, and each machine that did it was lost."""
