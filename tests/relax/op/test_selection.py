"""relax.op.unique: its flags are constants that decide what the result is."""

import pytest

from weft import relax
from weft.relax.struct_info import PrimStructInfo, TensorStructInfo

DATA = TensorStructInfo((2, 3), "float32")
NAMES = ("return_index", "return_inverse", "return_counts")


@pytest.mark.parametrize("name", NAMES)
def test_unique_when_a_flag_is_a_variable(name):
    x, flag = relax.Var("x", DATA), relax.Var("flag", PrimStructInfo("bool"))
    bb = relax.BlockBuilder()
    with pytest.raises(TypeError, match=rf"relax.unique: {name}: expected a constant .* got flag"):
        with bb.function("main", [x, flag]):
            bb.emit(relax.op.unique(x, **{name: flag}))


def test_unique_when_flags_are_prim_values(infer):
    info = infer(lambda x: relax.op.unique(x, return_counts=relax.PrimValue(True)), DATA)
    assert [(field.dtype, field.ndim) for field in info.fields] == [("float32", 1), ("int64", 1)]
    info = infer(lambda x: relax.op.unique(x, sorted=relax.PrimValue(False), axis=1), DATA)
    assert (info.dtype, info.ndim) == ("float32", 2)


def test_unique_of_a_scalar_has_one_element(infer):
    info = infer(lambda x: relax.op.unique(x, return_index=True), TensorStructInfo((), "int32"))
    assert [[int(n) for n in field.shape] for field in info.fields] == [[1], [1]]


def test_unique_when_the_axis_is_out_of_range():
    bb = relax.BlockBuilder()
    x = relax.Var("x", DATA)
    with pytest.raises(IndexError, match="relax.unique: axis 2 is out of range for a tensor of 2"):
        with bb.function("main", [x]):
            bb.emit(relax.op.unique(x, axis=2))
