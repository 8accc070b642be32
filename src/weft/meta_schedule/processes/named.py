"""Functions that a user gives by themselves or by the name under which they are registered."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from weft.meta_schedule.processes.process import Outcome
from weft.runtime.registry import get_global_func
from weft.support.errors import IRValueError

Given: TypeAlias = str | Callable[..., Any] | None
MEMORY: Final = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
"""Bytes of memory that a worker may take by default: half of the machine's."""


def function_of(given: Given, default: Callable[..., Any]) -> Callable[..., Any]:
    """The function that was given, the registered one of that name, or the default for None."""
    if given is None:
        return default
    if not isinstance(given, str):
        return given
    function = get_global_func(given, allow_missing=True)
    if function is None:
        raise IRValueError(
            f"no function is registered as {given!r} in the worker process; register it in the "
            "initializer, which runs there"
        )
    return function


def failure_text(name: str, outcome: Outcome) -> str:
    """How a job failed, in the words of TVM's builders and runners."""
    if outcome.kind == "exception":
        return f"{name}: An exception occurred\n{outcome.text}"
    if outcome.kind == "ended":
        return f"{name}: The worker process {outcome.text}"
    return f"{name}: {outcome.text}"
