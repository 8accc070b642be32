"""``WEFT_PERF=1``: perf is told where each kernel lies."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import numpy as np

from weft.runtime.native.perf import LoadedFunction, PerfNotes

PROGRAM = """
import ctypes, os
import weft
from weft import te

x = te.placeholder((64,), name="x")
built = weft.build(te.create_prim_func([x, te.compute((64,), lambda i: x[i] + 1.0)]))
function = built["main"]
path = f"/tmp/perf-{os.getpid()}.map"
with open(path, encoding="utf-8") as file:
    lines = [line.split(" ", 2) for line in file.read().splitlines()]
dump = f"/tmp/jit-{os.getpid()}.dump"
[(address, size)] = [(int(a, 16), int(s, 16)) for a, s, name in lines if name == "weft__main"]
with open(dump, "rb") as file:
    assert ctypes.string_at(address, size) in file.read()
print(size)
os.unlink(path)
os.unlink(dump)
"""


def test_the_map_names_each_kernel(tmp_path):
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, env={**os.environ, "WEFT_PERF": "1"}, capture_output=True, text=True, timeout=300,
        cwd=tmp_path, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


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
