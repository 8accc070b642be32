"""What LLVM is and offers, and numbers for the names of its intrinsics."""

import pytest

import weft
from weft.script import tir as T
from weft.support.errors import CodegenError, IRKeyError
from weft.target import Target
from weft.target.codegen import (
    llvm_get_intrinsic_name,
    llvm_get_vector_width,
    llvm_lookup_intrinsic_id,
    llvm_version_major,
    target_has_features,
)


def test_names_and_numbers():
    number = llvm_lookup_intrinsic_id("llvm.ctpop")
    assert number > 0
    assert llvm_lookup_intrinsic_id("llvm.ctpop") == number
    assert llvm_get_intrinsic_name(number) == "llvm.ctpop"
    assert llvm_lookup_intrinsic_id("ctpop") == llvm_lookup_intrinsic_id("llvm.") == 0
    with pytest.raises(IRKeyError, match="number 0 in this process; write its name"):
        llvm_get_intrinsic_name(0)


def test_a_number_in_a_program_is_the_name():
    @T.prim_func
    def f(A: T.Buffer((4,), "uint8")):
        A[0] = T.call_llvm_pure_intrin(
            T.llvm_lookup_intrinsic_id("llvm.ctpop.i8"), T.uint32(1), A[1], dtype="uint8"
        )

    assert f.body.value.args[0].value == "llvm.ctpop.i8"
    with pytest.raises(weft.TVMError, match="no LLVM intrinsic has been given the number 9999"):
        weft.tir.call_llvm_pure_intrin("int32", 9999, 1)


def test_version_and_features():
    assert llvm_version_major() >= 14
    assert llvm_get_vector_width("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell") == 256
    explicit = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=+avx2,-avx512f")
    assert target_has_features("avx2", explicit)
    assert not target_has_features(["avx2", "avx512f"], explicit)
    with pytest.raises(CodegenError, match="whether haswell has sse2 is not known here"):
        target_has_features("sse2", explicit)
