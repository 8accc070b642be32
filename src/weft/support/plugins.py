"""Plug-ins: what other installed packages add to weft, found by their entry points.

A package names what it adds in its ``pyproject.toml``, in one of four groups::

    [project.entry-points."weft.operators"]
    acme = "acme.operators"          # a module, whose import registers operators

A plug-in is loaded when it is needed: a target when its kind is named, operators when one is not
registered, the converters of a framework at the first import of such a model, a pass when it is
named. A plug-in that cannot be loaded is a ``PluginError`` that names its package.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Final

from weft.support.errors import TVMError

TARGETS: Final = "weft.targets"
"""Name of a kind of target -> its backend (``weft.codegen.backend.Backend``)."""
PASSES: Final = "weft.passes"
"""Name -> a pass, a ScheduleRule, or a function that returns one (``weft.driver.pipeline``)."""
OPERATORS: Final = "weft.operators"
"""Any name -> a module that registers operators and their lowering."""
CONVERTERS: Final = "weft.converters"
"""``torch``, ``onnx`` or a name with that prefix (``torch.acme``) -> a module of converters."""

_LOADED: Final[dict[tuple[str, str, str], object]] = {}
"""(group, name, value) of an entry point -> the object that it names."""
_FAILED: Final[dict[tuple[str, str, str], str]] = {}
"""The same -> why it could not be loaded the first time. What a module registered before it failed
is refused the next time, as a second definition; the reason is the first failure."""
_PACKAGES: Final[set[str]] = set()
"""The packages from which something was loaded."""


class PluginError(TVMError, ImportError):
    """A plug-in cannot be loaded, or is not what its group asks for."""


def named(group: str, name: str) -> object | None:
    """Load the entry point ``name`` of a group; None if no installed package has it."""
    entries = {entry.value: entry for entry in _entries(group) if entry.name == name}
    if len(entries) > 1:
        owners = " and ".join(sorted(_owner(entry) for entry in entries.values()))
        raise PluginError(f"{group}: {owners} both define {name!r}; uninstall one of them")
    return next((_load(entry) for entry in entries.values()), None)


def names(group: str) -> list[str]:
    """The names that installed packages define in a group, sorted."""
    return sorted({entry.name for entry in _entries(group)})


def load_group(group: str, first_word: str = "") -> bool:
    """Load a group, or its names with a prefix; returns whether anything new was loaded."""
    before = len(_LOADED)
    for entry in _entries(group):
        if not first_word or entry.name.partition(".")[0] == first_word:
            _load(entry)
    return len(_LOADED) > before


def load_module(name: str) -> ModuleType:
    """Import a module that registers what it adds: ``weft compile ... --plugin acme``."""
    try:
        module = importlib.import_module(name)
    except Exception as error:
        raise PluginError(
            f"the plug-in {name!r} cannot be imported: {type(error).__name__}: {error}; expected a "
            "module that Python finds (install its package, or set PYTHONPATH)"
        ) from error
    _PACKAGES.add(_package(name))
    return module


def digest_of(module: str) -> bytes | None:
    """A digest of a module's code: empty for weft's own, which other digests cover.

    For a module of a plug-in, it is of all sources of the package. None if the module belongs to
    no plug-in, so that its code is not known.
    """
    if _package(module) == "weft":
        return b""
    return sources_digest(module) if _package(module) in _PACKAGES else None


def sources_digest(module: str) -> bytes | None:
    """A digest of the sources of the package that a module belongs to; None without a file."""
    words = module.split(".")
    outer = [".".join(words[:count]) for count in range(1, len(words) + 1)]
    files_of = [getattr(sys.modules.get(name), "__file__", None) for name in outer]
    file = next((file for file in files_of if file), None)  # namespace packages have none
    if file is None or not Path(file).exists():
        return None
    path = Path(file)
    files = sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]
    return _digest(tuple([(str(item), item.stat().st_mtime_ns) for item in files]))


@functools.lru_cache(maxsize=64)
def _digest(files: tuple[tuple[str, int], ...]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for file, _ in files:
        content = Path(file).read_bytes()
        digest.update(f"{Path(file).name}:{len(content)}\n".encode())
        digest.update(content)
    return digest.digest()


def _package(module: str) -> str:
    return module.partition(".")[0]


def _entries(group: str) -> tuple[EntryPoint, ...]:
    return _installed(group, tuple(sys.path))


@functools.lru_cache(maxsize=16)
def _installed(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The entry points of a group, cached for one value of ``sys.path``."""
    del path  # importlib.metadata reads it itself
    return tuple(importlib.metadata.entry_points(group=group))


def _owner(entry: EntryPoint) -> str:
    distribution = entry.dist
    return "a package" if distribution is None else f"{distribution.name} {distribution.version}"


def _load(entry: EntryPoint) -> object:
    key = (entry.group, entry.name, entry.value)
    if key not in _LOADED:
        try:
            _LOADED[key] = entry.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            first = _FAILED.setdefault(key, reason)
            before = "" if first == reason else f" (the first time: {first})"
            raise PluginError(
                f"the plug-in {entry.name!r} of {_owner(entry)} ({entry.group}: {entry.value}) "
                f"cannot be loaded: {reason}{before}; mend or uninstall its package"
            ) from error
        _PACKAGES.add(_package(entry.module))
    return _LOADED[key]
