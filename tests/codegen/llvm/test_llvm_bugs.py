"""Programs that LLVM itself compiled wrongly: what codegen does against it."""

from __future__ import annotations

import pytest

from tests.lib.agreement import disagreement
from tests.lib.generate import FLOATS, random_prim_func
from weft.codegen.llvm.compile import SLP_MISTAKES

NARROWED = 78414813364
"""The seed of a program with ``float32(min(uint64(int16), uint64(int16)))`` that the SLP vectoriser
of LLVM 22 computed in 32 bits (found by ``make fuzz``)."""

BFLOAT_VECTORS = 119096104158
"""The seed of a program on which LLVM 22 aborts the process where bfloat16 is its own ``bfloat``:
"Do not know how to soft promote this operator's operand" (found by ``make fuzz``)."""


def test_bfloat16_does_not_abort_the_process():
    kinds = (*FLOATS, "int32", "bool")
    assert disagreement(random_prim_func(BFLOAT_VECTORS, kinds, intrinsics=False)) is None


def test_unsigned_conversions_are_not_narrowed():
    assert disagreement(random_prim_func(NARROWED)) is None


@pytest.mark.parametrize(
    ("line", "hit"),
    [
        ("%1 = uitofp i64 %0 to float", True),
        ("%1 = uitofp <4 x i32> %0 to <4 x float>", True),
        ("%1 = uitofp i8 %0 to float", False),
        ("%1 = sitofp i64 %0 to float", False),
    ],
)
def test_slp_is_off_only_beside_such_a_conversion(line, hit):
    assert bool(SLP_MISTAKES.search(line)) is hit
