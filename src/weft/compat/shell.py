"""Modules for packages of TVM that weft does not have: ``tvm._ffi`` takes names from others."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from weft.compat.modules import ALIASES, GPU_LIBRARIES, SHELLS
from weft.support.facade import PlannedNameError


class Shell(ModuleType):
    """Such a module: its submodules and names come from the tables of ``weft.compat.modules``."""

    def __init__(self, path: str) -> None:
        sources = SHELLS[path]
        super().__init__(f"tvm.{path}", f"Names of {', '.join(sources) or 'other modules'}.")
        self.__path__: list[str] = []
        self._path, self._sources = path, sources

    def __getattr__(self, name: str) -> object:
        """A submodule, or the name of the first source that has it."""
        if name.startswith("__"):
            raise AttributeError(name)
        child = f"{self._path}.{name}"
        if child in SHELLS:
            return shell(child)
        if child in ALIASES:
            return importlib.import_module(ALIASES[child])
        for source in self._sources:
            module = importlib.import_module(source)
            if hasattr(module, name):
                return getattr(module, name)
        if child in GPU_LIBRARIES:
            raise PlannedNameError(
                f"tvm.{child} is a module of TVM 0.20 that weft does not have yet "
                "(part of: code generation for GPUs)"
            )
        where = f"; looked in {', '.join(self._sources)}" if self._sources else ""
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{where}")


@functools.cache
def shell(path: str) -> Shell:
    """The package ``tvm.<path>``; the same object at each call."""
    return Shell(path)


contrib = shell("contrib")
ffi = shell("_ffi")
