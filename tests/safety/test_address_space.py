"""Code loads wherever the system has room: the distance to its constants never ends a process."""

from __future__ import annotations

import math
import platform
import subprocess
import sys

import pytest

PROGRAM = '''
import ctypes
from weft.runtime.native.externals import bind_external
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.parts import load_code

STEPS = 4000  # 32 KB of code beside half a kilobyte of constants
body = ["  %v0 = load volatile double, ptr @table"]
for step in range(STEPS):
    body.append(f"  %p{step} = getelementptr [64 x double], ptr @table, i64 0, i64 {step % 64}")
    body.append(f"  %w{step} = load volatile double, ptr %p{step}")
    body.append(f"  %v{step + 1} = fadd double %v{step}, %w{step}")
numbers = ", ".join(f"double {place}.0" for place in range(64))
text = "\\n".join(
    [f"@table = private unnamed_addr constant [64 x double] [{numbers}]",
     "declare double @log2(double)", "define double @total() {", *body,
     f"  %l = call double @log2(double %v{STEPS})", "  ret double %l", "}"])
bind_external("log2")
code = object_from_ir(text)

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PRIVATE, ANONYMOUS, NORESERVE = 0x02, 0x20, 0x4000

def reserve(size):
    """Address space that nothing else may take; no memory."""
    return libc.mmap(None, size, 0, PRIVATE | ANONYMOUS | NORESERVE, -1, 0)

GIGABYTE = 1 << 30
wall = reserve(4 * GIGABYTE)
while reserve(1 << 14) > wall:  # the code must not fit above the wall,
    pass
libc.munmap(wall + 4 * GIGABYTE - (1 << 16), 1 << 13)  # the constants only there
loaded = load_code(code)
print(ctypes.CFUNCTYPE(ctypes.c_double)(loaded.address("total"))())
'''


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="arranges the address space as Linux on x86-64 hands it out",
)
def test_code_and_its_constants_stay_near_each_other_in_a_crowded_address_space():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-500:]
    assert float(done.stdout) == math.log2(sum(step % 64 for step in range(4000)))
