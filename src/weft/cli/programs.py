"""Programs in TVMScript that a user names on the command line: ``prog.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import weft
from weft.cli.models import imported_file
from weft.support.errors import IRValueError, TVMError

KINDS: Final = "file.py with TVMScript (functions or a module; a script as script() prints it, too)"


def is_program(text: str) -> bool:
    """Whether a text names a file of Python as a whole, and no model in it."""
    return text.endswith(".py")


def program_of(text: str) -> Any:
    """The IRModule of a file.

    A file that is one script is parsed and not run; of another one, which is imported, the modules
    and functions that it defines are taken.
    """
    path = Path(text)
    if not path.is_file():
        raise IRValueError(f"{text}: there is no such file")
    try:
        parsed = weft.script.from_source(path.read_text(encoding="utf-8"))
    except (TVMError, UnicodeDecodeError):
        parsed = None
    return module_of([parsed] if parsed is not None else _defined(path), text)


def _defined(path: Path) -> list[object]:
    """The modules and functions among the global names of a file."""
    if "tvm" in path.read_text(encoding="utf-8", errors="replace"):
        weft.install_as_tvm()
    try:
        names = vars(imported_file(path))
    except TVMError:
        raise
    except Exception as error:
        raise IRValueError(f"{path}: running it failed: {type(error).__name__}: {error}") from error
    kinds = (weft.IRModule, weft.tir.PrimFunc, weft.relax.Function)
    return [value for value in names.values() if isinstance(value, kinds)]


def module_of(programs: list[Any], where: str) -> Any:
    """One module: the only one that there is, or one of all functions."""
    modules = [item for item in programs if isinstance(item, weft.IRModule)]
    if len(modules) > 1:
        raise IRValueError(f"{where}: expected one module, found {len(modules)}")
    if modules:
        return modules[0]
    functions = {
        str(item.attrs.get("global_symbol", f"main{at or ''}")): item
        for at, item in enumerate(programs)
    }
    if not functions:
        raise IRValueError(f"{where}: expected a module or functions in TVMScript, found none")
    return weft.IRModule(functions)
