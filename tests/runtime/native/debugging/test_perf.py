"""``WEFT_PERF=1``: perf is told where each kernel and each of its lines lies."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft.runtime.native.debugging.functions import LoadedFunction
from weft.runtime.native.debugging.line_table import Row, SourceFile
from weft.runtime.native.debugging.perf import PerfNotes

PROGRAM = """
import os, sys
import numpy as np
import weft
from weft.script import tir as T

@T.prim_func
def summed(x: T.Buffer((4096,), "float32"), y: T.Buffer((4096,), "float32")):
    for i in range(4096):
        y[i] = T.exp(x[i])
    for i in range(4096):
        y[i] = y[i] * T.float32(3)

function = weft.build(summed, "llvm")["summed"]
arrays = [weft.nd.array(np.ones(4096, np.float32)) for _ in range(2)]
for _ in range(int(sys.argv[1])):
    function(*arrays)
print(os.getpid())
"""


def run(calls, *command, folder):
    """The process identifier of a run of the program, and what it printed before."""
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    whole = [*command, sys.executable, "program.py", str(calls)]
    environment = {**os.environ, "WEFT_PERF": "1", "WEFT_CACHE_DIR": str(folder)}
    done = subprocess.run(
        whole, env=environment, capture_output=True, text=True, timeout=500, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.fixture
def dumped(tmp_path):
    """The names of the functions in a process's map, and the records of its dump."""
    process = run(1, folder=tmp_path)
    files = [f"/tmp/perf-{process}.map", f"/tmp/jit-{process}.dump"]
    with open(files[0], encoding="utf-8") as listed, open(files[1], "rb") as dump:
        names = {line.split(" ", 2)[2].strip() for line in listed}
        records = list(records_of(dump.read()))
    for path in files:
        os.unlink(path)
    assert not os.path.exists(f"/tmp/jit-{process}.so")  # gdb's, deleted at the end
    return names, records


def records_of(data):
    """(kind, content) of each record of a dump."""
    at = struct.unpack_from("<IIII", data)[2]
    while at < len(data):
        kind, size = struct.unpack_from("<II", data, at)
        yield kind, data[at + 16 : at + size]
        at += size
    assert at == len(data)


def lines_of(content):
    """The address of the code that a record of lines is for, and (address, line, file) of each."""
    code, count = struct.unpack_from("<QQ", content)
    rows, at = [], 16
    for _ in range(count):
        address, line, _ = struct.unpack_from("<QII", content, at)
        end = content.index(b"\0", at + 16)
        rows.append((address, line, content[at + 16 : end].decode()))
        at = end + 1
    assert at == len(content)
    return code, rows


def test_the_map_names_each_kernel_and_the_dump_its_lines(dumped):
    names, records = dumped
    assert "weft__summed" in names
    [place] = [
        at for at, (kind, content) in enumerate(records)
        if kind == 0 and content[40:].startswith(b"weft__summed\0")
    ]  # fmt: skip
    begin, size = struct.unpack_from("<QQ", records[place][1], 16)
    kind, content = records[place - 1]
    code, rows = lines_of(content)
    assert (kind, code) == (2, begin)
    assert rows[0][0] == begin
    assert all(begin <= address < begin + size for address, _, _ in rows)
    [path] = {path for _, _, path in rows}
    with open(path, encoding="utf-8") as file:
        text = file.read().split("\n")
    reached = [text[line - 1].strip() for _, line, _ in rows]
    assert any("y[i] = T.exp" in line for line in reached)
    assert any("* T.float32(3.0)" in line for line in reached)


def test_a_record_of_the_dump_has_the_code_and_its_size(tmp_path):
    notes = PerfNotes(tmp_path, 77, 62)
    code = np.frombuffer(b"\x90\x90\xc3", np.uint8).copy()
    notes.add(iter([LoadedFunction("kernel", code.ctypes.data, 3)]))
    notes.close()
    data = (tmp_path / "jit-77.dump").read_bytes()
    magic, version, header, machine = struct.unpack_from("<IIII", data)
    assert (magic, version, machine) == (0x4A695444, 1, 62)
    kind, size = struct.unpack_from("<II", data, header)
    assert (kind, header + size) == (0, len(data))
    assert data.endswith(b"kernel\0\x90\x90\xc3")
    text = (tmp_path / "perf-77.map").read_text(encoding="utf-8")
    assert text == f"{code.ctypes.data:x} 3 kernel\n"


def test_a_function_gets_the_lines_of_its_own_addresses(tmp_path):
    notes = PerfNotes(tmp_path, 78, 62)
    code = np.frombuffer(b"\x90\x90\xc3\xc3", np.uint8).copy()
    begin, file = code.ctypes.data, SourceFile("/tmp/f.py", None)
    rows = [
        Row(begin - 1, file, 9), Row(begin, file, 2), Row(begin + 1, file, 0),
        Row(begin + 2, file, 4), Row(begin + 3, None, 0), Row(begin + 3, file, 7),
    ]  # fmt: skip
    functions = [LoadedFunction("first", begin, 3), LoadedFunction("second", begin + 3, 1)]
    notes.add(functions, rows)
    notes.close()
    records = list(records_of((tmp_path / "jit-78.dump").read_bytes()))
    assert [kind for kind, _ in records] == [2, 0, 2, 0]
    assert lines_of(records[0][1]) == (
        begin, [(begin, 2, "/tmp/f.py"), (begin + 2, 4, "/tmp/f.py")]
    )  # fmt: skip
    assert lines_of(records[2][1]) == (begin + 3, [(begin + 3, 7, "/tmp/f.py")])


def perf(*arguments, folder):
    """What perf prints, or None where it may not, or is not there."""
    if shutil.which("perf") is None:
        return None
    done = subprocess.run(
        ["perf", *arguments], capture_output=True, text=True, cwd=folder, timeout=300, check=False
    )
    return done.stdout if done.returncode == 0 else None


def test_perf_names_lines(tmp_path):
    record = ["record", "-e", "cpu-clock", "-k", "mono", "-o", "run.data"]
    if perf(*record, "true", folder=tmp_path) is None:
        pytest.skip("perf is not installed, or may not record here")
    process = run(5000, "perf", *record, folder=tmp_path)
    perf("inject", "--jit", "-i", "run.data", "-o", "named.data", folder=tmp_path)
    shown = perf("annotate", "-i", "named.data", "--stdio", "-s", "weft__summed", folder=tmp_path)
    objects = Path("/tmp").glob(f"jitted-{process}-*.so")
    for path in (f"/tmp/perf-{process}.map", f"/tmp/jit-{process}.dump", *objects):
        os.unlink(path)
    assert shown is not None
    assert "for i in range(4096):" in shown
    assert "y[i] = y[i] * T.float32(3.0)" in shown
