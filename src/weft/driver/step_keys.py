"""Keys that identify passes and schedule rules, for caches.

A key is made of the sources of the packages whose code the step runs, and of the values that it
holds: options, and what its functions close over. A step has no key if it holds any other object,
or if its code is in no package (a notebook, a script). Its results are then not cached.
"""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType

from weft.codegen.generator_digest import code_text
from weft.dlight.apply import ScheduleRule
from weft.ir.transform import Pass
from weft.support import plugins


class NoKeyError(Exception):
    """A value that no text can identify."""


def key_of_step(step: Pass | ScheduleRule) -> str | None:
    """The key of a step; None if it depends on something that no key can contain."""
    describer = _Describer()
    try:
        content = describer.described(step)
        return repr((content, sorted([_sources(module) for module in describer.modules])))
    except NoKeyError:
        return None


def _sources(module: str) -> bytes:
    """The digest of a module's package; empty for weft, whose sources are in every key anyway."""
    known = plugins.digest_of(module)
    digest = plugins.sources_digest(module) if known is None else known
    if digest is None or module == "__main__":
        raise NoKeyError
    return digest


class _Describer:
    """Describes values by texts and lists of texts; collects the modules whose code they run."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.open: list[object] = []
        """The objects around the value that is being described."""

    def described(self, value: object) -> object:
        """The description of a value and of its parts."""
        if isinstance(value, str | bytes | int | float | None):
            return repr(value)
        if any(value is other for other in self.open):
            return "a part of itself"
        self.open.append(value)
        try:
            return self._parts(value)
        finally:
            self.open.pop()

    def _parts(self, value: object) -> object:
        if isinstance(value, tuple | list):
            return [self.described(item) for item in value]
        if isinstance(value, dict):
            return [self.described(item) for pair in value.items() for item in pair]
        if isinstance(value, type | ModuleType):
            name = value.__module__ if isinstance(value, type) else value.__name__
            self.modules.add(name)
            return getattr(value, "__qualname__", name)
        if isinstance(value, MethodType):
            return [self.described(value.__func__), self.described(value.__self__)]
        if isinstance(value, FunctionType):
            self.modules.add(value.__module__)
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = [*cells, value.__defaults__, value.__kwdefaults__]
            return [code_text(value.__code__), *map(self.described, parts)]
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        if slots or not hasattr(value, "__dict__"):
            raise NoKeyError
        return [self.described(type(value)), self.described(vars(value))]
