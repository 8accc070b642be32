"""Instructions called by name are checked against the processor before LLVM sees them."""

import pytest

from weft.codegen.llvm.instructions import NEEDED, check_instructions
from weft.support.errors import CodegenError
from weft.target.features import PROCESSORS
from weft.target.host import LLVMOptions

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


def test_other_text_is_not_looked_at():
    check_instructions("call float @llvm.fma.f32(float %a, float %b, float %c)", options("x86-64"))
    check_instructions("call i32 @llvm.x86.sse42.crc32.32.8(i32 %a, i8 %b)", options("x86-64"))


def test_each_feature_has_processors():
    known = {feature for features in PROCESSORS.values() for feature in features}
    assert {feature for needed in NEEDED.values() for feature in needed.split()} <= known
