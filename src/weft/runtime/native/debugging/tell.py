"""Tells perf and gdb of an object that was loaded (``WEFT_PERF=1``): functions and lines.

Lines are those of the lowered functions, if the object was compiled under ``WEFT_PERF=1``, too. The
texts are in its line tables, and become files.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from weft.backends.cpu.isa.architecture import Loading
from weft.runtime.native.debugging.functions import functions_in
from weft.runtime.native.debugging.gdb import debugger, symbol_file
from weft.runtime.native.debugging.line_table import (
    FOLDER,
    Row,
    SourceFile,
    line_rows,
    lowered_path,
)
from weft.runtime.native.debugging.perf import FOLDER as PERF_FOLDER
from weft.runtime.native.debugging.perf import notes_of
from weft.runtime.native.debugging.sections import debug_sections
from weft.runtime.native.elf import ObjectFile, Table
from weft.support import slots

_LOG: Final = logging.getLogger(__name__)
_FOR_ALL: Final = 0o1777
"""The rights of the folder of texts: as those of ``/tmp``."""


def tell_tools(
    file: ObjectFile, addresses: Table, code: range, loading: Loading
) -> Callable[[], None]:
    """Tell of a loaded object; what is returned tells that it is gone.

    Args:
        file: the object.
        addresses: those of its symbols.
        code: the addresses of its code.
        loading: the processor's relocations.
    """
    functions = list(functions_in(file, addresses))
    tables, rows = _lines(file, addresses, loading)
    write_texts({row.file for row in rows if row.file is not None})
    process = os.getpid()
    try:
        notes_of(process, file.machine).add(functions, rows)
        debugger_here = debugger(PERF_FOLDER, process, file.machine, loading.ret)
    except OSError as error:
        _LOG.warning("perf and gdb are not told of code: %s", error)
        return lambda: None
    return debugger_here.add(symbol_file(file.machine, code, functions, tables))


def _lines(
    file: ObjectFile, addresses: Table, loading: Loading
) -> tuple[dict[str, bytes], list[Row]]:
    """The sections for debuggers, and the rows of the line tables in them."""
    try:
        tables = debug_sections(file, addresses, loading)
        return tables, line_rows(tables)
    except (ValueError, IndexError, KeyError) as error:
        _LOG.warning("the line tables of loaded code are damaged: %s", error)
        return {}, []


def write_texts(files: Iterable[SourceFile]) -> None:
    """Write the texts of lowered functions to where debuggers look for them.

    The name of such a file has a digest of its text: one that is there is not written again, and
    another name is none of ours.
    """
    for file in files:
        path = Path(file.path)
        if file.text is None or lowered_path(path.stem.rpartition("-")[0], file.text) != file.path:
            continue
        try:
            if not FOLDER.exists():
                FOLDER.mkdir()
                FOLDER.chmod(_FOR_ALL)
            with path.open("x", encoding="utf-8", errors="replace") as written:
                written.write(file.text)
        except FileExistsError:
            continue
        except OSError as error:
            _LOG.warning("the text %s cannot be written: %s", path, error)


slots.tell_tools.fill(tell_tools)
