"""Memory of compiling: what LLVM used for one program is given back after it."""

from __future__ import annotations

import ctypes

import pytest

from tests.lib.python_process import output_of

BUILDS = """
import ctypes, gc
from weft.codegen.llvm.compile import compile_text
from weft.target.host import llvm_options

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    )]

libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo

def in_use():
    gc.collect()
    return libc.mallinfo2().uordblks

def build(number):
    text = f'''
        %struct{number} = type {{ float, [{number} x i8] }}
        define float @f{number}(float %x, ptr noalias %p) {{
            %y = fadd float %x, {number}.5
            %q = getelementptr %struct{number}, ptr %p, i32 {number}
            %z = load float, ptr %q, !alias.scope !1
            %s = fmul float %y, %z
            ret float %s
        }}
        !0 = distinct !{{!0, !"domain {number}"}}
        !2 = distinct !{{!2, !0, !"scope {number}"}}
        !1 = !{{!2}}
    '''
    assert compile_text(text, llvm_options(f"llvm -opt-level={number % 4}"))

for number in range(1, 41):
    build(number)
before = in_use()
for number in range(41, 241):
    build(number)
print((in_use() - before) / 200)
"""


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="asks glibc's allocator what is in use"
)
def test_distinct_builds_leave_no_memory_behind():
    printed = output_of(BUILDS, env={"WEFT_COMPILE_WORKERS": "0"})
    # a pass manager that is kept is 50,000 bytes, types in LLVM's global context are 1,260
    assert float(printed) < 600
