"""Dot products on Arm, Hexagon and AMD: what they compute, and the instructions that do it."""

import numpy as np
import pytest

import weft
import weft.tensor_intrin
from weft import tir
from weft.script import tir as T
from weft.tensor_intrin import arm_cpu, hexagon, rocm
from weft.tir.interp import run

ARM = [
    (arm_cpu.ARM_DOT_4x4_i8_NEON_INTRIN, "int8", "int32", ["smull", "saddlp", "addp"]),
    (arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN, "int8", "int32", ["sdot"]),
    (arm_cpu.ARM_DOT_4x4_u8_UDOT_INTRIN, "uint8", "uint32", ["udot"]),
    (arm_cpu.ARM_DOT_4x4_u8_HDOT_INTRIN, "uint8", "int32", ["udot"]),
]
OTHERS = [
    (hexagon.VRMPY_u8u8i32_INTRIN, "llvm.hexagon.V6.vrmpyub.acc.128B"),
    (hexagon.VRMPY_u8i8i32_INTRIN, "llvm.hexagon.V6.vrmpybusv.acc.128B"),
    (hexagon.VDMPY_i16i16i32_INTRIN, "llvm.hexagon.V6.vdmpyhvsat.acc.128B"),
    (rocm.AMDGPU_SDOT4_INTRIN, "llvm.amdgcn.sdot4"),
]
TARGET = "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+dotprod"


@pytest.mark.parametrize(("name", "operand", "result", "instructions"), ARM)
def test_descriptions_and_implementations_agree(name, operand, result, instructions):
    del instructions
    intrinsic, limits = tir.TensorIntrin.get(name), np.iinfo(operand)
    rng = np.random.default_rng(0)
    b = rng.integers(limits.min, limits.max + 1, (4, 4)).astype(operand)
    b[0] = limits.min
    for a in (rng.integers(limits.min, limits.max + 1, 4).astype(operand), b[0]):
        sums = [np.arange(4, dtype=result) for _ in range(2)]
        run(intrinsic.desc, a, b, sums[0])
        run(intrinsic.impl, a, b, sums[1])
        np.testing.assert_array_equal(*sums)


@pytest.mark.parametrize(("name", "operand", "result", "instructions"), ARM)
def test_a_schedule_uses_the_instructions(name, operand, result, instructions):
    @T.prim_func
    def product(
        A: T.Buffer((2, 8), operand), B: T.Buffer((2, 4, 4), operand), C: T.Buffer((2, 4), result)
    ):
        for i, j, k in T.grid(2, 4, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.cast(0, result)
                C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], result) * T.cast(
                    B[vk // 4, vj, vk % 4], result
                )

    sch = tir.Schedule(product)
    _, j, k = sch.get_loops("C")
    outer, inner = sch.split(k, [None, 4])
    sch.reorder(outer, j, inner)
    sch.decompose_reduction("C", outer)
    sch.tensorize(j, name)
    lines = weft.build(sch.mod["main"], target=TARGET).get_source("asm").splitlines()
    assert {line.split()[0] for line in lines if line.strip()} >= set(instructions)


def test_a_processor_without_dot_products_is_an_error():
    impl = tir.TensorIntrin.get(arm_cpu.ARM_DOT_4x4_i8_SDOT_INTRIN).impl
    with pytest.raises(weft.TVMError, match="needs dotprod"):
        weft.build(impl, target="llvm -mtriple=aarch64-linux-gnu -mattr=+neon")


@pytest.mark.parametrize("name", [row[0] for row in ARM + OTHERS])
def test_their_text_is_read_again(name):
    intrinsic = tir.TensorIntrin.get(name)
    for func in (intrinsic.desc, intrinsic.impl):
        weft.ir.assert_structural_equal(func, weft.script.from_source(func.script()))


@pytest.mark.parametrize(("name", "instruction"), OTHERS)
def test_others_name_their_instruction(name, instruction):
    assert instruction in tir.TensorIntrin.get(name).impl.script()
