"""gdb is told of loaded code: the list in memory, the file that names it, and gdb itself."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
import uuid

import numpy as np
import pytest

import weft
from weft.backends.cpu.isa import architecture_of
from weft.runtime.native.debugging import tell
from weft.runtime.native.debugging.functions import LoadedFunction
from weft.runtime.native.debugging.gdb import Debugger, symbol_file
from weft.runtime.native.debugging.perf import PerfNotes
from weft.runtime.native.elf import read_object
from weft.script import tir as T

HERE = architecture_of(platform.machine())
pytestmark = pytest.mark.skipif(
    HERE.loading is None or sys.platform != "linux", reason="LLVM loads the code here, not weft"
)


@T.prim_func
def doubled(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        y[i] = x[i] * T.float32(2)


@pytest.fixture
def told(tmp_path):
    # a name of its own: the system gives a library of the same name again
    return Debugger(tmp_path / f"{uuid.uuid4()}.so", HERE.elf_machine, HERE.loading.ret)


def listed(told):
    """The contents of the files in the list, found as gdb finds them."""
    entries, address, before = [], told._list.first, None
    while address:
        fields = (ctypes.c_void_p * 3).from_address(address)
        size = ctypes.c_uint64.from_address(address + 24).value
        assert fields[1] == before
        entries.append(ctypes.string_at(fields[2], size))
        before, address = address, fields[0]
    return entries


def test_the_list_has_what_was_added_until_it_is_taken_back(told):
    assert listed(told) == []
    remove = [told.add(content) for content in (b"\0one", b"two", b"three")]
    assert listed(told) == [b"three", b"two", b"\0one"]
    remove[1]()
    assert listed(told) == [b"three", b"\0one"]
    remove[2]()
    remove[0]()
    assert listed(told) == []
    assert told._list.version == 1


def test_code_that_is_unloaded_while_the_list_changes_is_taken_out_then(told):
    remove = told.add(b"first")
    with told._lock:
        remove()  # as a finalizer does in the middle of another call
        assert listed(told) == [b"first"]
    told.add(b"second")
    assert listed(told) == [b"second"]


def test_without_a_folder_code_is_loaded_all_the_same(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("WEFT_PERF", "1")
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    monkeypatch.setattr(tell, "notes_of", lambda process, machine: PerfNotes(tmp_path / "no", 1, 2))
    x, y = (weft.nd.array(np.ones(4, "float32")) for _ in range(2))
    weft.build(doubled, "llvm")["doubled"](x, y)
    np.testing.assert_array_equal(y.numpy(), 2.0)
    assert "perf and gdb are not told of code" in caplog.text


def test_the_symbol_file_has_the_addresses_of_the_functions():
    functions = [LoadedFunction("f", 0x5000, 16), LoadedFunction("g.part", 0x5010, 32)]
    content = symbol_file(62, range(0x5000, 0x6000), functions, {".debug_line": b"abc"})
    file = read_object(content)
    assert file.machine == 62
    names = {file.section_name(section): section for section in file.sections}
    assert (int(names[".text"]["addr"]), int(names[".text"]["size"])) == (0x5000, 0x1000)
    assert file.table(names[".debug_line"], np.dtype("u1")).tobytes() == b"abc"
    found = dict(zip(file.names, file.symbols["value"].tolist(), strict=True))
    assert found == {"": 0, "f": 0x5000, "g.part": 0x5010}


PROGRAM = """
import numpy as np
import weft
from weft.script import tir as T

@T.prim_func
def outer(x: T.Buffer((64,), "int32"), y: T.Buffer((64,), "int32"), n: T.int32):
    for i in range(n):
        y[i] = x[i] // n

function = weft.build(outer, "llvm")["outer"]
x, y = [weft.nd.array(np.ones(64, np.int32)) for _ in range(2)]
function(x, y, 64)
del function
"""


def test_gdb_stops_in_a_kernel_and_shows_its_lines(tmp_path):
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    script = tmp_path / "commands"
    commands = "break weft__outer", "run", "bt 1", "list 1,9", "next", "delete", "continue"
    script.write_text("set breakpoint pending on\n" + "\n".join(commands), encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-x", str(script), "--args", sys.executable, str(program)],
        env={**os.environ, "WEFT_PERF": "1", "WEFT_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    if "ptrace" in done.stderr:
        pytest.skip("gdb may not trace here")
    text = done.stdout
    assert "weft__outer () at /tmp/weft-lowered/outer-" in text, text + done.stderr
    assert "2\tdef outer(x: T.Buffer((64,)" in text
    assert "3\t    for i in range(n):" in text
    assert text.count("4\t        y[i] = x[i] // n") == 2  # listed, and reached
    [process] = re.findall(r"process (\d+)\) exited normally", text)
    for path in (f"/tmp/perf-{process}.map", f"/tmp/jit-{process}.dump"):
        os.unlink(path)
