"""Line tables: which line each address comes from, and the texts that they have."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft.backends.cpu.isa.architecture import Loading
from weft.backends.cpu.lines import written_with_lines
from weft.codegen.join_objects import join_objects
from weft.codegen.llvm.compile import compile_text, translated
from weft.driver.pipeline import lower_tir
from weft.runtime.native.debugging import tell
from weft.runtime.native.debugging.line_table import (
    SourceFile,
    line_rows,
    lowered_path,
)
from weft.runtime.native.debugging.sections import debug_sections
from weft.runtime.native.elf import read_object
from weft.script import tir as T
from weft.target.host import llvm_options
from weft.target.target import Target

X86 = Loading(1, 2, 4, (9, 41, 42), b"\xff\x25", 10, b"\xc3")
TARGET = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3")


@T.prim_func
def scaled(A: T.Buffer((4096,), "float32"), B: T.Buffer((4096,), "float32"), n: T.int64):
    T.func_attr({"global_symbol": "scaled"})
    for i in range(4096):
        B[i] = A[i] * T.float32(3)
    B[n] = A[n] + T.float32(1)


@T.prim_func
def first(A: T.Buffer((16,), "int32")):
    T.func_attr({"global_symbol": "first"})
    A[0] = A[1] * A[1]


def written(func):
    name = func.attrs["global_symbol"]
    with TARGET:
        module = lower_tir()(weft.IRModule({name: func}))
    return written_with_lines(module, TARGET, checks=True).text


def tables_of(code, step=1 << 20):
    """The sections for debuggers, as if each section of the code were ``step`` bytes long."""
    file = read_object(code)
    addresses = np.array(
        [int(symbol["section"]) * step + int(symbol["value"]) for symbol in file.symbols], np.int64
    )
    return debug_sections(file, addresses, X86), dict(zip(file.names, addresses, strict=True))


def test_the_rows_are_the_locations_of_the_assembly():
    text, options = written(scaled), llvm_options(TARGET)
    tables, names = tables_of(compile_text(text, options))
    rows = line_rows(tables)
    assembly = translated(text, options, "assembly").decode()
    located = re.findall(r"^\s+\.loc\s+\d+ (\d+)", assembly, re.M)
    assert {row.line for row in rows if row.file is not None} == {int(line) for line in located}
    assert rows[0].address == names["weft__scaled"]
    assert rows[-1].file is None
    assert [row.address for row in rows] == sorted(row.address for row in rows)


def test_the_text_is_in_the_table():
    tables, _ = tables_of(compile_text(written(scaled), llvm_options(TARGET)))
    [file] = {row.file for row in line_rows(tables) if row.file is not None}
    assert file.text.startswith("@T.prim_func\ndef scaled(")
    assert file.path == lowered_path("scaled", file.text)


def test_joined_objects_keep_their_lines_apart():
    options = llvm_options(TARGET)
    codes = [compile_text(written(func), options) for func in (scaled, first)]
    tables, names = tables_of(join_objects(codes))
    rows = line_rows(tables)
    starts = {row.address: row.file.path for row in rows[::-1] if row.file is not None}
    for name in ("scaled", "first"):
        assert f"/{name}-" in starts[names[f"weft__{name}"]]
    alone = [line_rows(tables_of(code)[0]) for code in codes]
    assert sorted(row.line for row in rows) == sorted(row.line for part in alone for row in part)


def test_a_relocation_that_is_not_known_gives_no_lines():
    file = read_object(compile_text(written(first), llvm_options(TARGET)))
    addresses = np.zeros(len(file.symbols), np.int64)
    assert debug_sections(file, addresses, X86._replace(number=77)) == {}


def test_a_table_that_is_cut_off_is_refused():
    tables, _ = tables_of(compile_text(written(first), llvm_options(TARGET)))
    table = tables[".debug_line"]
    for end in range(6, len(table), 7):
        cut = (end - 4).to_bytes(4, "little") + table[4:end]
        try:
            line_rows({**tables, ".debug_line": cut})
        except (ValueError, IndexError, KeyError):
            continue


def test_tables_of_another_version_have_no_rows():
    old = b"\4\0" + bytes(20)
    assert line_rows({".debug_line": len(old).to_bytes(4, "little") + old}) == []


def test_texts_are_written_once_and_nowhere_else(tmp_path, monkeypatch):
    folder = tmp_path / "lowered"
    monkeypatch.setattr(tell, "FOLDER", folder)
    monkeypatch.setattr("weft.runtime.native.debugging.line_table.FOLDER", folder)
    text = "def f():\n    pass\n"
    path = lowered_path("a b/c", text)
    elsewhere = str(tmp_path / "f.py")
    files = [SourceFile(path, text), SourceFile(elsewhere, text), SourceFile(path, text + "!")]
    tell.write_texts(files)
    assert [file.name for file in folder.iterdir()] == [path.rpartition("/")[2]]
    assert (folder / path).read_text(encoding="utf-8") == text
    (folder / path).write_text("kept", encoding="utf-8")
    tell.write_texts(files)
    assert (folder / path).read_text(encoding="utf-8") == "kept"
    assert not (tmp_path / "f.py").exists()


@pytest.mark.parametrize("blocked", [True, False])
def test_a_folder_that_cannot_be_written_is_told(tmp_path, monkeypatch, caplog, blocked):
    folder = tmp_path / "lowered"
    if blocked:
        folder.write_text("no folder", encoding="utf-8")
    monkeypatch.setattr(tell, "FOLDER", folder)
    monkeypatch.setattr("weft.runtime.native.debugging.line_table.FOLDER", folder)
    tell.write_texts([SourceFile(lowered_path("f", "text"), "text")])
    assert ("cannot be written" in caplog.text) == blocked
