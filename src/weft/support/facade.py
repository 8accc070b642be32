"""Facades: packages whose ``__init__`` is one literal table of public names (design.md 2).

``module_getattr`` builds the PEP 562 ``__getattr__`` and ``__dir__`` of such a package. A name is
imported from its defining module at first use. A name that TVM 0.20 has and weft does not have yet
is an error that says so. Any other is looked up in the table of old names (slot ``legacy``); if it
is not there, the error suggests the nearest names.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, Final

from weft.support import slots
from weft.support.errors import IRAttributeError, UnsupportedError
from weft.support.forks import watch_forks
from weft.support.logs import show_by_environment
from weft.support.missing import MissingNameError

EXTRAS: Final[Mapping[str, str]] = {
    "onnx": "weft-compiler[onnx]",
    "ray": "weft-compiler[ray]",
    "rich": "weft-compiler[progress]",
    "safetensors": "safetensors",
    "torch": "weft-compiler[torch]",
    "xgboost": "weft-compiler[xgboost]",
}
"""Packages that only parts of weft need, and what brings them."""

show_by_environment()  # here, where the import of any part of weft begins


class PlannedNameError(IRAttributeError):
    """A name that weft is planned to have."""


class MissingPackageError(UnsupportedError, ImportError):
    """A part of weft needs a package that is not installed."""


def module_getattr(
    package: str,
    table: Mapping[str, str],
    submodules: tuple[str, ...] = (),
    planned: Mapping[str, str] | None = None,
    functions: str = "",
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``(__getattr__, __dir__)`` for ``package``.

    ``table`` maps a public name to its defining module, or to ``module:other_name`` when the
    public name differs; ``submodules`` are importable as attributes without an import statement;
    ``planned`` maps planned names to the feature they belong to. What the module ``functions``
    lists in ``__all__`` is public, too.
    """
    coming = planned or {}

    def resolve(name: str) -> object:
        target = table.get(name)
        if target is not None:
            module_name, _, attribute = target.partition(":")
            value = getattr(_module(module_name, package, name), attribute or name)
        elif name in submodules:
            value = _module(f"{package}.{name}", package, name)
        elif name == "__all__":
            return names()
        elif name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        elif name in coming:
            raise PlannedNameError(
                f"{package}.{name} is a name of TVM 0.20 that weft does not have yet "
                f"(part of: {coming[name]})"
            )
        elif functions and not is_module(package, name) and name in others():
            value = getattr(_module(functions, package, name), name)
        else:
            return _old_or_unknown(package, name, names)
        setattr(sys.modules[package], name, value)
        return value

    def others() -> list[str]:
        return list(importlib.import_module(functions).__all__) if functions else []

    def names() -> list[str]:
        return sorted({*table, *submodules, *others()})

    return resolve, names


def is_module(package: str, name: str) -> bool:
    """Whether the package has such a module: ``from package import module`` asks for names first.

    No import hook is asked, since one may look for the name in the package again.
    """
    folders = sys.modules[package].__path__
    return PathFinder.find_spec(f"{package}.{name}", folders) is not None


def _module(module: str, package: str, name: str) -> ModuleType:
    """The module; AttributeError for one that is planned and does not exist yet."""
    watch_forks()
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        brought_by = EXTRAS.get(error.name or "")
        if brought_by is not None:
            raise MissingPackageError(
                f"{package}.{name} needs the package {error.name}, which is not installed; "
                f"pip install '{brought_by}' brings it"
            ) from error
        if (error.name or "").rpartition(".")[2] != module.rpartition(".")[2]:
            raise
        raise PlannedNameError(f"{package}.{name} is not part of weft yet") from None


def _old_or_unknown(package: str, name: str, names: Callable[[], list[str]]) -> object:
    try:
        legacy = slots.legacy.get()
    except ModuleNotFoundError:
        legacy = None
    if legacy is not None:
        is_old, value = legacy.attribute(package, name)
        if is_old:
            return value

    def known() -> set[str]:
        old = set() if legacy is None else legacy.old_names(package)
        return {*names(), *vars(sys.modules[package])} | old

    raise MissingNameError(f"module {package!r} has no attribute {name!r}", name, known)
