"""Types that are tuples of tuples, one object in many places: the work is that of the objects.

Two hundred levels ``t = (t, t)`` are two hundred objects and a tree of 2**200.
"""

from __future__ import annotations

import pytest

from weft import relax, tir
from weft.ir.functor import Mutator, Visitor, collect, substitute
from weft.ir.structural import structural_equal, structural_hash
from weft.relax.ir import lattice
from weft.relax.ir.lattice import BaseCheckResult
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

N, M = tir.Var("n", "int64"), tir.Var("m", "int64")
STATIC, SYMBOLIC = TensorStructInfo((2, 3)), TensorStructInfo((N, 3))
RANK2 = TensorStructInfo(None, "float32", ndim=2)
LEVELS = 200


def tuples(info: StructInfo, levels: int = LEVELS) -> StructInfo:
    for _ in range(levels):
        info = TupleStructInfo([info, info])
    return info


def functions(info: StructInfo, levels: int = LEVELS) -> StructInfo:
    for _ in range(levels):
        info = FuncStructInfo([info], info)
    return info


def objects(info: StructInfo) -> int:
    return len(collect(info, StructInfo))


@pytest.mark.parametrize(
    ("base", "derived", "expected"),
    [
        (STATIC, STATIC, BaseCheckResult.PASS),
        (RANK2, STATIC, BaseCheckResult.PASS),
        (STATIC, RANK2, BaseCheckResult.FAIL_L2),
        (STATIC, TensorStructInfo((2, 4)), BaseCheckResult.FAIL_L0),
        (STATIC, ObjectStructInfo(), BaseCheckResult.FAIL_L1),
        (PrimStructInfo("int64"), PrimStructInfo(value=N), BaseCheckResult.PASS),
    ],
)
def test_comparing(base, derived, expected):
    base, derived = tuples(base), tuples(derived)
    assert lattice.struct_info_base_check(base, derived) == expected
    assert base.is_base_of(derived) is (expected == BaseCheckResult.PASS)
    assert (base == derived) is structural_equal(base, derived)


def test_unequal_types_differ():
    assert tuples(STATIC) != tuples(RANK2)
    assert tuples(STATIC) == tuples(TensorStructInfo((2, 3)))


def test_one_place_of_many_may_differ():
    """The pair that differs is found although one half of every pair was compared before."""
    one = other = STATIC
    for level in range(LEVELS):
        same = tuples(STATIC, level)
        one, other = TupleStructInfo([same, one]), TupleStructInfo([same, other])
    assert one == other
    changed = RANK2
    for level in range(LEVELS):
        changed = TupleStructInfo([tuples(STATIC, level), changed])
    assert one != changed
    assert changed.is_base_of(one)
    assert not one.is_base_of(changed)


def test_functions_of_functions():
    one, same = functions(STATIC), functions(TensorStructInfo((2, 3)))
    assert structural_equal(one, same)
    assert structural_hash(one) == structural_hash(same)
    assert one == same
    other = functions(TensorStructInfo((2, 4)))
    assert one != other
    assert not one.is_base_of(other)


def test_least_upper_bound():
    both = lattice.struct_info_lca(tuples(STATIC), tuples(TensorStructInfo((2, 4))))
    assert both == tuples(RANK2)
    assert objects(both) == LEVELS + 1
    results = [FuncStructInfo([tuples(STATIC)], tuples(info)) for info in (STATIC, RANK2)]
    assert lattice.struct_info_lca(*results).ret == tuples(RANK2)


@pytest.mark.parametrize("info", [SYMBOLIC, ShapeStructInfo((N,)), PrimStructInfo(value=N)])
def test_dropping_dimensions(info):
    for drop in (lattice.get_static_type, lattice.erase_to_well_defined):
        assert drop(tuples(info)) == tuples(drop(info))
        assert objects(drop(tuples(info))) <= LEVELS + 2  # two of the innermost
    assert lattice.erase_to_well_defined(tuples(info), {N: N}) == tuples(info)


def test_static_types_of_functions():
    assert lattice.get_static_type(functions(STATIC)) == functions(RANK2)


def test_symbols():
    assert lattice.symbolic_vars(tuples(SYMBOLIC)) == [N]
    assert lattice.defining_vars(tuples(SYMBOLIC)) == [N]
    assert lattice.match_params([tuples(SYMBOLIC)], [tuples(STATIC)])[N].value == 2


@pytest.mark.parametrize("build", [tuples, functions])
def test_substituting(build):
    replaced = substitute(build(SYMBOLIC), {N: M})
    assert structural_equal(replaced, build(TensorStructInfo((M, 3))))
    assert objects(replaced) < LEVELS + 8  # the innermost, and its leaves, at each place
    assert substitute(replaced, {N: M}) is replaced


def test_the_type_of_a_call():
    func = FuncStructInfo([tuples(SYMBOLIC)], tuples(SYMBOLIC))
    callee = relax.GlobalVar("f")
    call = relax.Call(callee, [relax.Var("x", tuples(STATIC))])
    assert lattice.derive_call_ret_struct_info(func, call) == tuples(STATIC)
    assert lattice.result_info([], tuples(RANK2), tuples(SYMBOLIC)) == tuples(RANK2)


def test_walks():
    class Count(Visitor):
        number = 0

        def visit_TupleStructInfo(self, node):
            self.number += 1
            self.visit_default(node)

    count = Count()
    count.visit(tuples(STATIC, 60))
    assert count.number < 2 * 60

    class Rebuilt(Mutator):
        number = 0

        def visit_TupleStructInfo(self, node):
            self.number += 1
            return self.visit_default(node)

    rebuilt = Rebuilt()
    assert rebuilt.visit(tuples(STATIC, 60)) == tuples(STATIC, 60)
    assert rebuilt.number < 2 * 60
