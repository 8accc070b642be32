"""Instructions called by name are checked against the processor before LLVM sees them."""

import pytest

import weft
from weft.codegen.llvm.instructions import check_instructions
from weft.script import tir as T
from weft.support.errors import CodegenError
from weft.target.host import LLVMOptions, llvm_options

CALL = 'call <8 x i32> @"llvm.x86.avx2.pmadd.wd"(<16 x i16> %a, <16 x i16> %b)'


def options(cpu, features=""):
    return LLVMOptions("x86_64-unknown-linux-gnu", cpu, features, 3, 0)


@pytest.mark.parametrize(
    ("cpu", "features", "legal"),
    [
        ("haswell", "", True), ("x86-64-v3", "", True), ("x86-64-v2", "", False),
        ("x86-64-v2", "+sse4.2,+avx2", True), ("haswell", "-avx2", False),
    ],
)  # fmt: skip
def test_features(cpu, features, legal):
    if legal:
        check_instructions(CALL, options(cpu, features))
        return
    with pytest.raises(CodegenError, match=f"pmadd.wd needs avx2, which .* {cpu} is not known"):
        check_instructions(CALL, options(cpu, features))


@pytest.mark.parametrize(
    ("name", "features", "missing"),
    [
        ("avx512.vpdpbusd.256", "+avx512vnni", "avx512vl"),
        ("avx512.vpdpbusd.256", "+avxvnni", ""),
        ("avx512.vpdpbusd.256", "+avx512fp16", "avx512vnni"),
        ("avx512.vpdpbusd.512", "+avx512vnni", ""), ("avx512.pmaddw.d.512", "+avx512f", "avx512bw"),
        ("avx512.mask.scalef.ps.128", "+avx512f", "avx512vl"),
        ("avx512.mask.scalef.ps.512", "+avx512bw", ""), ("sse42.crc32.32.8", "", "crc32"),
        ("ssse3.pshuf.b.128", "+sse4.2", ""), ("ssse3.pshuf.b.128", "", "ssse3"),
        ("avx512.pternlog.d.256", "+avx512f,+avx512vl", ""), ("avx512.max.pd.512", "+avx512f", ""),
        ("avx512.pternlog.q.128", "+avx512f", "avx512vl"),
    ],
)  # fmt: skip
def test_what_names_need(name, features, missing):
    text = f"call <4 x i32> @llvm.x86.{name}(<4 x i32> %a)"
    if not missing:
        check_instructions(text, options("x86-64", features))
        return
    with pytest.raises(CodegenError, match=rf"{name} needs {missing}\b.* -mattr=\+{missing}$"):
        check_instructions(text, options("x86-64", features))


@pytest.mark.parametrize(
    "target",
    ["-mcpu=haswell -mattr=+avx512f,+avx512vl", "-mcpu=znver4 -mattr=-avx512bw",
     "-mcpu=x86-64-v4 -mattr=-avx512dq", "-mcpu=knl"],
)  # fmt: skip
@pytest.mark.parametrize("lanes", [8, 16])
def test_what_lowering_calls_itself_is_there_with_a_part_of_avx512(target, lanes):
    """A maximum, which asks for AVX-512's own instructions where they are."""

    @T.prim_func
    def main(x: T.Buffer((lanes,), "float32"), y: T.Buffer((lanes,), "float32")):
        for i in T.vectorized(lanes):
            y[i] = T.max(x[i], y[i])

    assert "maxps" in weft.build(main, f"llvm {target}").get_source("asm")


def test_other_text_is_not_looked_at():
    check_instructions("call float @llvm.fma.f32(float %a, float %b, float %c)", options("x86-64"))
    check_instructions("call void @llvm.x86.sse2.pause()", options("x86-64"))


def test_an_instruction_of_another_architecture_is_refused():
    arm = llvm_options("llvm -mtriple=aarch64-linux-gnu")
    text = "call <4 x float> @llvm.x86.sse.max.ps(<4 x float> %a, <4 x float> %b)"
    with pytest.raises(CodegenError, match="max.ps is an instruction of x86_64, and the target"):
        check_instructions(text, arm)
    dot = "call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(<4 x i32> %a)"
    with pytest.raises(CodegenError, match="sdot.* needs dotprod, which .* processor generic"):
        check_instructions(dot, arm)
    check_instructions(dot, llvm_options("llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod"))
