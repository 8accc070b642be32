"""LLVM IR that a program brings with it: ``pragma_import_llvm`` and C compiled by clang."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import tir
from weft.compat import toolchain
from weft.script import tir as T
from weft.support.errors import CodegenError

ADD_ROW = """
@bias = global [2 x float] [float 1.0, float 0.5]
define i32 @add_row(ptr %from, ptr %to, i32 %count) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %source = getelementptr float, ptr %from, i32 %i
  %value = load float, ptr %source
  %added = load float, ptr @bias
  %sum = fadd float %value, %added
  %place = getelementptr float, ptr %to, i32 %i
  store float %sum, ptr %place
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %count
  br i1 %more, label %loop, label %end
end:
  ret i32 0
}
"""
IN_C = """
extern "C" int add_row(float *from, float *to, int count) {
  for (int i = 0; i < count; ++i) to[i] = from[i] + 1.0f;
  return 0;
}
"""
VALUES = np.arange(32, dtype="float32").reshape(4, 8)


@T.prim_func
def rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        with T.block("row"):
            v = T.axis.spatial(4, i)
            T.reads(A[v, 0:8])
            T.writes(B[v, 0:8])
            T.call_extern("int32", "add_row", T.address_of(A[v, 0]), T.address_of(B[v, 0]), 8)


def with_import(text, function=rows):
    schedule = tir.Schedule(function)
    schedule.annotate(schedule.get_loops("row")[0], "pragma_import_llvm", text)
    return schedule.mod


def run(built, name="rows"):
    out = weft.nd.empty((4, 8), "float32")
    built[name](weft.nd.array(VALUES), out)
    return out.numpy()


def test_the_imported_function_runs():
    built = weft.build(with_import(ADD_ROW))
    assert np.array_equal(run(built), VALUES + 1)
    assert "define internal i32 @add_row" in built.get_source("ll")


@pytest.mark.no_round_trip
def test_two_parts_of_a_program_import_the_same_text():
    first = next(iter(with_import(ADD_ROW).functions.values()))
    functions = {name: first.with_attr("global_symbol", name) for name in ("first", "second")}
    built = weft.build(weft.IRModule(functions))
    assert np.array_equal(run(built, "first"), VALUES + 1)
    assert np.array_equal(run(built, "second"), VALUES + 1)


def test_in_a_parallel_loop():
    schedule = tir.Schedule(with_import(ADD_ROW))
    schedule.parallel(schedule.get_loops("row")[0])
    assert np.array_equal(run(weft.build(schedule.mod)), VALUES + 1)


WRONG = {
    "a path": ("kernel.ll", r"expected the text of LLVM IR, got one line, 'kernel\.ll'; of"),
    "a number": (3, r"expected the text of LLVM IR, which .*create_llvm makes of C, got 3"),
    "no IR": ("int x;\nint y;", r"LLVM \d+ cannot read the imported LLVM IR: .*\n.*clang wrote"),
    "another processor": (
        'target triple = "riscv64-unknown-linux-gnu"\n' + ADD_ROW,
        r"the imported LLVM IR is for riscv64-unknown-linux-gnu, the program for .*--target=",
    ),
    "other arguments": (
        "define i32 @add_row(ptr %0, ptr %1, i64 %2) {\n  ret i32 0\n}",
        r"add_row: the imported function is i32 \(ptr, ptr, i64\), T\.call_extern calls it as i32 "
        r"\(ptr, ptr, i32\)",
    ),
    "a constructor": (
        "@llvm.global_ctors = appending global [0 x { i32, ptr, ptr }] zeroinitializer\n" + ADD_ROW,
        "code that runs when it is loaded",
    ),
    "a name of the program": (
        ADD_ROW + "define i32 @weft__rows() {\n  ret i32 0\n}",
        "weft__rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_imports_are_refused(case):
    text, match = WRONG[case]
    with pytest.raises(CodegenError, match=match) as caught:
        weft.build(with_import(text))
    assert len(str(caught.value).splitlines()) <= 10


@pytest.mark.skipif(not toolchain.find_clang(required=False), reason="needs clang")
def test_c_compiled_by_clang_runs():
    text = toolchain.create_llvm(IN_C)
    assert "optnone" not in text
    assert np.array_equal(run(weft.build(with_import(text))), VALUES + 1)
