"""The helpers of ``tvm.contrib`` that programs use: temporary folders and cached results."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class TempDirectory:
    """A temporary folder, removed with the object or by ``remove()``."""

    def __init__(self, custom_path: str | None = None, keep_for_debug: bool = False) -> None:
        self._owner: tempfile.TemporaryDirectory[str] | None = None
        if custom_path is not None:
            os.makedirs(custom_path, exist_ok=True)
            self.temp_dir = custom_path
        elif keep_for_debug:
            self.temp_dir = tempfile.mkdtemp(prefix="weft")
        else:
            self._owner = tempfile.TemporaryDirectory(prefix="weft", ignore_cleanup_errors=True)
            self.temp_dir = self._owner.name
        self.path = self.temp_dir

    def remove(self) -> None:
        """Remove the folder, unless the caller gave it or asked to keep it."""
        if self._owner is not None:
            self._owner.cleanup()

    def relpath(self, name: str) -> str:
        """The path of a file in the folder."""
        return os.path.join(self.temp_dir, name)

    def listdir(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self.temp_dir)

    def __truediv__(self, name: str) -> str:
        return self.relpath(name)

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


def tempdir(custom_path: str | None = None, keep_for_debug: bool = False) -> TempDirectory:
    """A temporary folder."""
    return TempDirectory(custom_path, keep_for_debug)


def memoize(key: str, save_at_exit: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache a function's results for the life of the process; none is written to disk."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kept: dict[object, R] = {}

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            where = (args, tuple(sorted(kwargs.items())))
            if where not in kept:
                kept[where] = function(*args, **kwargs)
            return kept[where]

        return call

    return decorate
