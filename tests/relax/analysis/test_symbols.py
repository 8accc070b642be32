"""Symbolic variables in struct info; copies of functions."""

from __future__ import annotations

from weft import relax, tir
from weft.ir import structural_equal
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo
from weft.script import relax as R
from weft.script import tir as T


def test_symbols_in_struct_info():
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    info = TupleStructInfo([TensorStructInfo((n, n + m), "float32"), ShapeStructInfo([n, 4])])
    used = relax.analysis.tir_vars_in_struct_info(info)
    assert [var.name for var in used] == ["n", "m"]
    assert [var.name for var in relax.analysis.definable_tir_vars_in_struct_info(info)] == ["n"]
    extents = relax.analysis.collect_non_negative_expressions(info)
    assert [str(extent) for extent in extents] == ["n", "n + m"]


@R.function(private=True)
def scaled(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    n = T.int64()
    y = R.add(x, R.ones((n,), "float32"))
    return y


def test_a_copy_has_its_own_variables():
    copy = relax.utils.copy_with_new_vars(scaled)
    assert structural_equal(copy, scaled)
    assert copy.params[0] is not scaled.params[0]
    mine, its = relax.analysis.bound_vars(copy), relax.analysis.bound_vars(scaled)
    assert not {id(var) for var in mine} & {id(var) for var in its}
    old = {id(var) for var in relax.analysis.defined_symbolic_vars(scaled)}
    assert not old & {id(var) for var in relax.analysis.defined_symbolic_vars(copy)}


def test_sizes_of_a_copy_are_known_not_to_be_negative():
    """Else a slice up to the end of an axis has an extent of choices, and sums of it have more."""

    @R.function(private=True)
    def whole(x: R.Tensor(("n", 4))) -> R.Tensor(("n", 2)):
        n = T.int64(is_size_var=True)
        return R.strided_slice(x, (0, 1), (0, 2), (n, 4), (1, 1))

    copy = relax.utils.copy_with_new_vars(whole)
    (symbol,) = relax.analysis.defined_symbolic_vars(copy)
    assert isinstance(symbol, tir.SizeVar)
    normal = relax.BlockBuilder().normalize(copy.body)
    assert normal.struct_info.shape.values[0] is symbol
