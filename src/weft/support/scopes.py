"""Scopes: what ``with`` makes current for the code inside of it, in one thread.

Targets, pass contexts, builders and exporters all use this one mechanism.
A scope is a context variable, so each thread starts with none open, and a task of asyncio has
those that were open where it was started.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Generic, TypeVar

T = TypeVar("T")


class Scopes(Generic[T]):
    """The open scopes of one kind, the innermost last."""

    __slots__ = ("_open",)

    def __init__(self, name: str) -> None:
        self._open: ContextVar[tuple[T, ...]] = ContextVar(name, default=())

    def push(self, value: T) -> None:
        """Open a scope: ``value`` is current."""
        self._open.set((*self._open.get(), value))

    def pop(self) -> None:
        """Close the innermost scope."""
        self._open.set(self._open.get()[:-1])

    @property
    def innermost(self) -> T | None:
        """What is current, or None."""
        values = self._open.get()
        return values[-1] if values else None
