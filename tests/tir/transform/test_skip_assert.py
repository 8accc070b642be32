"""SkipAssert: programs without their asserts, by the pass and by an option of a build."""

import numpy as np
import pytest

import weft
from weft.script import tir as T
from weft.tir.transform import SkipAssert


@T.prim_func
def first(A: T.Buffer((4,), "int32"), n: T.int32):
    assert n > 0, "expected a positive number"
    for i in range(4):
        assert n > 1, "expected more than one"
        A[i] = n


def test_asserts_are_left_out():
    @T.prim_func
    def expected(A: T.Buffer((4,), "int32"), n: T.int32):
        for i in range(4):
            A[i] = n

    module = weft.IRModule({"main": first})
    after = SkipAssert()(module)
    weft.ir.assert_structural_equal(after["main"], expected.with_attr("global_symbol", "first"))
    assert SkipAssert()(after) is after
    assert SkipAssert(always=False)(module) is module


def test_an_option_leaves_asserts_out_of_a_build():
    array = weft.nd.array(np.zeros(4, "int32"))
    with pytest.raises(weft.TVMError, match="expected a positive number"):
        weft.build(first, target="llvm")["first"](array, 0)
    with weft.transform.PassContext(config={"tir.disable_assert": True}):
        built = weft.build(first, target="llvm")
    built["first"](array, 0)
    built["first"](array, -3)
    assert (array.numpy() == -3).all()
