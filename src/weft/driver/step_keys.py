"""What tells one pass or schedule rule from another in the key of a cache.

The sources of the packages whose code it runs, and what it holds: options, and what its functions
close over. A step that holds anything else, or whose code is in no package (a notebook, a script),
has no key: what it makes is not kept.
"""

from __future__ import annotations

from types import FunctionType, MethodType, ModuleType

from weft.codegen.generator_digest import code_text
from weft.dlight.apply import ScheduleRule
from weft.ir.transform import Pass
from weft.support import plugins


class NoKeyError(Exception):
    """A value that no text tells from others."""


def key_of_step(step: Pass | ScheduleRule) -> str | None:
    """The key of a step; None where there is none that would tell all that decides what it does."""
    teller = _Teller()
    try:
        content = teller.told(step)
        return repr((content, sorted([_sources(module) for module in teller.modules])))
    except NoKeyError:
        return None


def _sources(module: str) -> bytes:
    """The digest of a module's package; nothing for weft, whose sources keys digest anyway."""
    known = plugins.digest_of(module)
    digest = plugins.sources_digest(module) if known is None else known
    if digest is None or module == "__main__":
        raise NoKeyError
    return digest


class _Teller:
    """Values as texts and lists of texts; ``modules`` are those whose code they run."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.open: list[object] = []
        """The objects that what is told is part of."""

    def told(self, value: object) -> object:
        """A value, and what it consists of."""
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
            return [self.told(item) for item in value]
        if isinstance(value, dict):
            return [self.told(item) for pair in value.items() for item in pair]
        if isinstance(value, type | ModuleType):
            name = value.__module__ if isinstance(value, type) else value.__name__
            self.modules.add(name)
            return getattr(value, "__qualname__", name)
        if isinstance(value, MethodType):
            return [self.told(value.__func__), self.told(value.__self__)]
        if isinstance(value, FunctionType):
            self.modules.add(value.__module__)
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            parts = [*cells, value.__defaults__, value.__kwdefaults__]
            return [code_text(value.__code__), *map(self.told, parts)]
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        if slots or not hasattr(value, "__dict__"):
            raise NoKeyError
        return [self.told(type(value)), self.told(vars(value))]
