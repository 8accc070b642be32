"""LLVM IR whose instructions know their lines in the lowered functions, for ``WEFT_PERF=1``.

The line tables of the object code name a file for each function, and have its text, so that the
process that loads the code can write the file (``weft.runtime.native.debugging``).
"""

from __future__ import annotations

from weft.codegen.backend import WrittenCode
from weft.codegen.llvm.debug_lines import DebugLines, PrintedText
from weft.codegen.llvm.emit import emit_module
from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.runtime.native.debugging.line_table import lowered_path
from weft.script.printed import Printed
from weft.support import slots
from weft.support.errors import TVMError
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import DECLARED
from weft.tir.lowering.function_names import name_of


def written_with_lines(mod: IRModule, target: Target, *, checks: bool) -> WrittenCode:
    """The LLVM IR of lowered functions, with lines."""
    texts: dict[str, PrintedText] = {}
    functions: dict[GlobalVar, BaseFunc] = {}
    for var, func in mod.functions.items():
        functions[var] = func
        if isinstance(func, PrimFunc) and DECLARED not in func.attrs:
            name = name_of(func, mod)
            try:
                printed = Printed.of(func, name)
            except TVMError:
                continue  # what has no text has no lines
            text = printed.text + "\n"
            texts[name] = PrintedText(lowered_path(name, text), text, _first_line(text))
            functions[var] = printed.marked()
    debug = DebugLines(texts)
    return WrittenCode(
        *emit_module(mod.with_(functions=functions), target, checks=checks, debug=debug)
    )


def _first_line(text: str) -> int:
    r"""The line of a function's head.

    >>> _first_line("@T.prim_func\ndef main():\n    pass")
    2
    """
    lines = text.split("\n")
    return next((at for at, line in enumerate(lines, 1) if line.startswith("def ")), 1)


slots.written_with_lines.fill(written_with_lines)
