"""Native functions from LLVM IR text written in the tests, before and beside the compiler."""

from __future__ import annotations

import pytest

from weft.runtime.native.llvm import object_from_ir
from weft.runtime.native.native_library import NativeLibrary

DECLARATIONS = """
declare i32 @weft_raise(i32, ptr, i64, i64)
declare i32 @weft_call_packed(ptr, ptr, i32, ptr)
declare i32 @weft_parallel(ptr, ptr, i64, i32)
declare i32 @weft_parallel_brief(ptr, ptr, i64, i32)
declare i32 @weft_team(ptr, ptr, i64, i32)
"""


def library(text: str) -> NativeLibrary:
    """The functions in the text."""
    return NativeLibrary(object_from_ir(DECLARATIONS + text), "test")


@pytest.fixture
def load():
    """``load(ir)``: a NativeLibrary of the functions in the text."""
    return library
