"""Struct infos: equality, subsumption, least upper bound, erasure, results of calls."""

import pytest

from weft import relax
from weft.relax.ir import lattice
from weft.relax.ir.lattice import BaseCheckResult
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var as TirVar

N, M = TirVar("n", "int64"), TirVar("m", "int64")
OBJECT = ObjectStructInfo()
ANY = TensorStructInfo(None, "")
RANK2 = TensorStructInfo(None, "float32", ndim=2)
SYMBOLIC = TensorStructInfo((N, 3))
STATIC = TensorStructInfo((2, 3))


def test_equality_sees_through_arithmetic():
    assert TensorStructInfo((N + N,)) == TensorStructInfo((N * 2,))
    assert TensorStructInfo((N,)) != TensorStructInfo((M,))
    assert TensorStructInfo((2,)) != TensorStructInfo((2,), "int32")
    assert hash(STATIC) == hash(TensorStructInfo((2, 3)))


@pytest.mark.parametrize(
    ("base", "derived", "result"),
    [
        (OBJECT, STATIC, BaseCheckResult.PASS),
        (STATIC, OBJECT, BaseCheckResult.FAIL_L1),
        (ANY, RANK2, BaseCheckResult.PASS),
        (RANK2, SYMBOLIC, BaseCheckResult.PASS),
        (RANK2, ANY, BaseCheckResult.FAIL_L1),
        (SYMBOLIC, STATIC, BaseCheckResult.FAIL_L2),
        (STATIC, SYMBOLIC, BaseCheckResult.FAIL_L2),
        (STATIC, RANK2, BaseCheckResult.FAIL_L2),
        (STATIC, TensorStructInfo((2, 4)), BaseCheckResult.FAIL_L0),
        (STATIC, TensorStructInfo((2, 3), "int8"), BaseCheckResult.FAIL_L0),
        (STATIC, ShapeStructInfo((2, 3)), BaseCheckResult.FAIL_L0),
        (ShapeStructInfo(ndim=2), ShapeStructInfo((N, 1)), BaseCheckResult.PASS),
        (ShapeStructInfo(ndim=1), ShapeStructInfo((N, 1)), BaseCheckResult.FAIL_L0),
        (TupleStructInfo([RANK2, OBJECT]), TupleStructInfo([STATIC, STATIC]), BaseCheckResult.PASS),
        (TupleStructInfo([RANK2]), TupleStructInfo([STATIC, STATIC]), BaseCheckResult.FAIL_L0),
        (PrimStructInfo("int64"), PrimStructInfo(value=N), BaseCheckResult.PASS),
        (PrimStructInfo(value=N), PrimStructInfo("int64"), BaseCheckResult.FAIL_L2),
        (PrimStructInfo("int32"), PrimStructInfo(value=N), BaseCheckResult.FAIL_L0),
    ],
)
def test_base_check(base, derived, result):
    assert lattice.struct_info_base_check(base, derived) == result
    assert base.is_base_of(derived) == (result == BaseCheckResult.PASS)


def test_functions_compare_with_their_symbols_bound():
    one = FuncStructInfo([TensorStructInfo((N,))], TensorStructInfo((N,)))
    two = FuncStructInfo([TensorStructInfo((M,))], TensorStructInfo((M,)))
    assert one.is_base_of(two)
    impure = FuncStructInfo([TensorStructInfo((M,))], TensorStructInfo((M,)), purity=False)
    assert impure.is_base_of(one)
    assert not one.is_base_of(impure)


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        (STATIC, STATIC, STATIC),
        (STATIC, TensorStructInfo((2, 4)), RANK2),
        (STATIC, TensorStructInfo((2,)), TensorStructInfo(None, "float32")),
        (STATIC, TensorStructInfo((2, 3), "int8"), TensorStructInfo((2, 3), "")),
        (STATIC, ShapeStructInfo((2,)), OBJECT),
        (ShapeStructInfo((2,)), ShapeStructInfo((3,)), ShapeStructInfo(ndim=1)),
        (TupleStructInfo([STATIC]), TupleStructInfo([RANK2]), TupleStructInfo([RANK2])),
        (TupleStructInfo([STATIC]), TupleStructInfo([]), OBJECT),
        (PrimStructInfo(value=N), PrimStructInfo(value=M), PrimStructInfo("int64")),
    ],
)
def test_least_upper_bound(lhs, rhs, expected):
    assert lattice.struct_info_lca(lhs, rhs) == expected
    assert lattice.struct_info_lca(rhs, lhs) == expected


def test_static_type_drops_dimensions():
    info = TupleStructInfo([SYMBOLIC, ShapeStructInfo((N,)), PrimStructInfo(value=N)])
    expected = TupleStructInfo([RANK2, ShapeStructInfo(ndim=1), PrimStructInfo("int64")])
    assert lattice.get_static_type(info) == expected


def test_erasure_keeps_what_the_maps_know():
    assert lattice.erase_to_well_defined(SYMBOLIC) == RANK2
    assert lattice.erase_to_well_defined(SYMBOLIC, {N: N}) is SYMBOLIC
    assert lattice.erase_to_well_defined(SYMBOLIC, {N: M}) == TensorStructInfo((M, 3))
    more = TensorStructInfo((N + 1, N * M))
    assert lattice.erase_to_well_defined(more, {N: 2, M: M}) == TensorStructInfo((3, 2 * M))
    both = TupleStructInfo([SYMBOLIC, STATIC])
    assert lattice.erase_to_well_defined(both) == TupleStructInfo([RANK2, STATIC])


def test_result_of_a_call_binds_symbols():
    func = FuncStructInfo([TensorStructInfo((N, M))], TensorStructInfo((M, N)))
    call = relax.Call(relax.GlobalVar("f"), [relax.Var("x", STATIC)])
    assert lattice.derive_call_ret_struct_info(func, call) == TensorStructInfo((3, 2))


def test_result_of_a_call_forgets_symbols_defined_inside():
    func = FuncStructInfo([RANK2], SYMBOLIC)
    call = relax.Call(relax.GlobalVar("f"), [relax.Var("x", STATIC)])
    assert lattice.derive_call_ret_struct_info(func, call) == RANK2


def test_call_with_wrong_arguments():
    func = FuncStructInfo([STATIC], STATIC)
    f = relax.GlobalVar("f")
    with pytest.raises(IRValueError, match="call of f: expected 1 arguments, got 0"):
        lattice.derive_call_ret_struct_info(func, relax.Call(f, []))
    wrong = relax.Var("x", TensorStructInfo((2, 4)))
    with pytest.raises(IRTypeError, match="call of f: argument 0: expected"):
        lattice.derive_call_ret_struct_info(func, relax.Call(f, [wrong]))
