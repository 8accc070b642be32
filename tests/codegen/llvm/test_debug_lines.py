"""Debug locations: every instruction of a function has one, LLVM accepts them, and keeps them."""

from __future__ import annotations

import re

import weft
from weft.codegen.llvm.compile import translated
from weft.codegen.llvm.debug_lines import DebugLines
from weft.codegen.llvm.emit import emit_module
from weft.script import tir as T
from weft.script.printer import text_and_lines
from weft.target.host import llvm_options
from weft.tir.printed_lines import with_lines


@T.prim_func
def parts(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), n: T.int64):
    for i in T.parallel(4096):
        B[i] = T.exp(A[i]) // T.float32(3)
    B[n] = A[n] + T.float32(1)


def located():
    text, lines = text_and_lines(parts)
    module = weft.IRModule({"parts": with_lines(parts, lines)})
    target = weft.target.Target("llvm -num-cores=2")
    return text.split("\n"), emit_module(module, target, debug=DebugLines())[0], target


def test_instructions_have_a_location_and_labels_have_none():
    _, llvm, _ = located()
    for match in re.finditer(r"^define [^\n]* !dbg !\d+ \{\n(.*?)^\}$", llvm, re.M | re.S):
        for line in match[1].split("\n"):
            if "alloca" in line or not line:
                continue
            assert line.startswith("  ") == ("!dbg" in line), line
    assert "define i32 @weft__parts" in llvm


def test_llvm_carries_the_lines_to_the_assembly():
    rows, llvm, target = located()
    assembly = translated(llvm, llvm_options(target), "assembly").decode()
    lines = {int(line) for line in re.findall(r"\.loc\s+\d+ (\d+)", assembly)}
    named = {at for at, row in enumerate(rows, 1) if "B[" in row and "=" in row}
    assert named <= lines


def test_without_debug_nothing_is_written():
    llvm = emit_module(weft.IRModule({"parts": parts}), "llvm")[0]
    assert "!dbg" not in llvm
    assert "DICompileUnit" not in llvm
