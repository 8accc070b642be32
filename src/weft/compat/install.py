"""``install_as_tvm()``: in this process ``import tvm``, and every submodule, means weft.

A first finder on ``sys.meta_path`` answers for ``tvm`` and ``tvm.*``. The module objects are weft's
own, so both names give the same classes. Paths that weft names otherwise are in
``weft.compat.modules``. A second finder is the last of the list: ``from tvm.script.parser import
tir`` makes Python look for ``weft.script.parser.tir``, as the module's own name is weft's.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from weft.compat.adapt import removed_message
from weft.compat.modules import ALIASES, FURTHER_NAMES, SHELLS
from weft.compat.shell import shell
from weft.compat.spellings import REMOVED
from weft.support.errors import TVMError
from weft.support.facade import PlannedNameError

NAME: Final = "tvm"
OWN: Final = "weft"


class AliasLoader(Loader):
    """Loads a module by putting another one, already named elsewhere, in its place."""

    def __init__(self, target: ModuleType) -> None:
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """None: Python makes an empty module, which ``exec_module`` then replaces."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Register the target; the import machinery returns what ``sys.modules`` holds."""
        sys.modules[module.__name__] = self.target


class TvmFinder:
    """The import hook: resolves ``tvm[.path]`` to a module of weft."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The alias of a name under ``tvm``; None for any other name."""
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        path_in_tvm = fullname[len(NAME) + 1 :]
        module = resolve(path_in_tvm)
        if module is None:
            # `from shell import x` ignores an error that names the module it looks for
            is_in_shell = path_in_tvm.rpartition(".")[0] in SHELLS
            name = f"{OWN}.{path_in_tvm}" if is_in_shell else fullname
            raise ModuleNotFoundError(_unknown(fullname), name=name)
        return ModuleSpec(fullname, AliasLoader(module), is_package=hasattr(module, "__path__"))


class LastFinder:
    """The last finder: resolves paths of TVM that are written under ``weft``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module that TVM's path means; an error that names the nearest if there is none."""
        rest = fullname.removeprefix(f"{OWN}.")
        if rest == fullname:
            return None
        module = resolve(rest) if rest in ALIASES or rest in SHELLS else None
        if module is None:
            # `from weft import x` ignores the error if it names the module that is imported.
            raise ModuleNotFoundError(_unknown(f"{NAME}.{rest}"), name=f"{NAME}.{rest}")
        return ModuleSpec(fullname, AliasLoader(module))


def resolve(path: str) -> ModuleType | None:
    """The module that ``tvm.<path>`` means; None if there is none."""
    if path in SHELLS:
        return shell(path)
    target = ALIASES.get(path) or (f"{OWN}.{path}" if path else OWN)
    if not _exists(target):
        return None
    return importlib.import_module(target)


def _extend(owner: str) -> None:
    """Let a module have the names that TVM has in it, and weft in others."""
    names = vars(importlib.import_module(owner))
    own = names.get("__getattr__")

    def further(name: str) -> object:
        if not name.startswith("__"):
            for source in FURTHER_NAMES[owner]:
                module = importlib.import_module(source)
                if hasattr(module, name):
                    return getattr(module, name)
        if own is not None:
            return own(name)
        raise AttributeError(f"module {owner!r} has no attribute {name!r}")

    names["__getattr__"] = further


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None  # LastFinder raises instead
    except ModuleNotFoundError:
        return False


def _unknown(fullname: str) -> str:
    parent, _, last = fullname.rpartition(".")
    for row in REMOVED:
        if (row.owner, row.old) == (f"{OWN}{parent[len(NAME) :]}", last):
            return removed_message(row)
    package = resolve(parent[len(NAME) + 1 :])
    siblings = {entry.name for entry in pkgutil.iter_modules(getattr(package, "__path__", ()))}
    try:
        getattr(package, last)
    except PlannedNameError as error:
        return str(error)
    except AttributeError:
        pass  # the nearest names, submodules included, are looked for below
    if f"{parent}.{last}"[len(NAME) + 1 :] in ALIASES:
        return f"{fullname} is not part of weft yet"
    siblings.update(dir(package))
    prefix = f"{parent}."[len(NAME) + 1 :]
    for path in (*ALIASES, *SHELLS):
        if path.startswith(prefix):
            siblings.add(path[len(prefix) :].split(".")[0])
    nearest = difflib.get_close_matches(last, sorted(siblings), n=3)
    hint = f"; did you mean {', '.join([f'{parent}.{name}' for name in nearest])}?"
    return f"{parent} has no module or name {last!r}{hint if nearest else ''}"


def install_as_tvm() -> None:
    """Make ``import tvm`` mean weft in this process; a second call changes nothing.

    It must come before the first ``import tvm``: once the real one is loaded, its classes and
    weft's would mix, so that is refused.
    """
    real = sys.modules.get(NAME)
    own = importlib.import_module(OWN)
    if real is not None and real is not own:
        place = getattr(real, "__file__", None) or "unknown place"
        raise TVMError(
            f"install_as_tvm: the real tvm is already imported (from {place}); call "
            "weft.install_as_tvm() before the first `import tvm`, in a fresh process"
        )
    if not any(isinstance(finder, TvmFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TvmFinder())
        sys.meta_path.append(LastFinder())
        for owner in FURTHER_NAMES:
            _extend(owner)
    sys.modules[NAME] = own
