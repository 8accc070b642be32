"""Tags: a string on an operation that says what kind of computation it is (``elemwise`` ...).

``with tag_scope("elemwise"):`` gives the tag to every ``te.compute`` inside. A scope also is a
decorator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ClassVar, ParamSpec, Self, TypeVar

from weft.support.errors import IRValueError
from weft.support.scopes import Scopes

P = ParamSpec("P")
Result = TypeVar("Result")


class TagScope:
    """A scope whose tag ``te.compute`` gives to operations without a tag of their own."""

    _open: ClassVar[Scopes[TagScope]] = Scopes("tags")

    def __init__(self, tag: str) -> None:
        self.tag = tag

    @classmethod
    def get_current(cls) -> TagScope | None:
        """The innermost scope, or None."""
        return cls._open.innermost

    def __enter__(self) -> Self:
        outer = self._open.innermost
        if outer is not None:
            raise IRValueError(
                f"tag_scope({self.tag!r}): scopes do not nest; {outer.tag!r} is open"
            )
        self._open.push(self)
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.pop()

    def __call__(self, function: Callable[P, Result]) -> Callable[P, Result]:
        """Run a function inside the scope (decorator)."""

        @functools.wraps(function)
        def tagged(*args: P.args, **kwargs: P.kwargs) -> Result:
            with TagScope(self.tag):
                return function(*args, **kwargs)

        return tagged


def tag_scope(tag: str) -> TagScope:
    """The scope in which computations get ``tag``; a context manager and a decorator."""
    return TagScope(tag)
