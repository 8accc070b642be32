"""HoistExpression and HoistIfThenElse: before and after."""

from __future__ import annotations

import pytest

import weft
from tests.lib.agreement import disagreement
from tests.lib.generate import random_prim_func
from weft.ir.transform import PassContext
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir.interp import run
from weft.tir.transform import (
    HoistedConditionals,
    HoistedLetBindings,
    HoistExpression,
    HoistIfThenElse,
)


@T.prim_func
def branch(A: T.Buffer((4, 4), "int32"), n: T.int32):
    for i in range(4):
        for j in range(4):
            if n < 3:
                A[i, j] = 1
            else:
                A[i, j] = 2


def after(step, func, config=None):
    with PassContext(config=config or {}):
        return step(weft.IRModule({"main": func}))["main"]


def test_a_branch_leaves_all_loops_that_do_not_change_it():
    @T.prim_func
    def expected(A: T.Buffer((4, 4), "int32"), n: T.int32):
        if n < 3:
            for i in range(4):
                for j in range(4):
                    A[i, j] = 1
        else:
            for i in range(4):
                for j in range(4):
                    A[i, j] = 2

    for step in (HoistExpression(), HoistIfThenElse(), HoistIfThenElse("basic")):
        weft.ir.assert_structural_equal(after(step, branch).body, expected.body, True)


def test_a_part_of_a_conjunction_leaves(becomes):
    @T.prim_func
    def before(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            for j in range(4):
                if j < 3 and i < 2:
                    A[i, j] = 1

    @T.prim_func
    def expected(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            if i < 2:
                for j in range(4):
                    if j < 3:
                        A[i, j] = 1

    becomes(HoistExpression(), before, expected)


def test_conditions_on_data_or_that_may_fault_stay(becomes):
    @T.prim_func
    def before(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            for j in range(4):
                if A[0] < 3:
                    B[j] = B[j] + i

    becomes(HoistExpression(), before, before)

    @T.prim_func
    def divides(A: T.Buffer((4,), "int32"), n: T.int32):
        for i in range(4):
            if 8 // n < 3:
                A[i] = 1

    weft.ir.assert_structural_equal(after(HoistExpression(), divides), divides)


def test_lets_leave_where_their_flag_is_set(becomes):
    @T.prim_func
    def before(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            for j in range(4):
                with T.LetStmt(i * 2) as v:
                    A[i, j] = v + j

    @T.prim_func
    def expected(A: T.Buffer((4, 4), "int32")):
        for i in range(4):
            with T.LetStmt(i * 2) as v:
                for j in range(4):
                    A[i, j] = v + j

    becomes(HoistExpression(), before, expected)
    config = {"tir.HoistExpression": {"hoisted_let_bindings": HoistedLetBindings.Never}}
    weft.ir.assert_structural_equal(after(HoistExpression(), before, config), before)


def test_flags_choose_the_conditions():
    config = {"tir.HoistExpression": {"hoisted_conditionals": HoistedConditionals.IfElseExpr}}
    weft.ir.assert_structural_equal(after(HoistExpression(), branch, config), branch)
    with pytest.raises(PassError, match="there is no option 'conditionals'"):
        after(HoistExpression(), branch, {"tir.HoistExpression": {"conditionals": 1}})
    with pytest.raises(PassError, match="expected None or 'basic', got 'plain'"):
        HoistIfThenElse("plain")


@pytest.mark.parametrize("seed", range(7100, 7120))
def test_random_programs_keep_their_meaning(seed):
    program = random_prim_func(seed, intrinsics=False)
    assert disagreement(program, native=False, text=False) is None
    hoisted = HoistExpression()(weft.IRModule({"main": program.func}))["main"]
    results = []
    for func in (program.func, hoisted):
        arguments = program.copy_arguments()
        run(func, *arguments)
        results.append([arguments[index].tobytes() for index in program.outputs])
    assert results[0] == results[1]
