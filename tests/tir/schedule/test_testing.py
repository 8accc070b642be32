"""The comparison that leaves global symbols aside."""

import pytest

import weft
from weft.script import ir as I
from weft.script import tir as T
from weft.tir.schedule.testing import assert_structural_equal_ignore_global_symbol


@T.prim_func
def one():
    T.evaluate(1)


@T.prim_func
def also_one():
    T.evaluate(1)


@T.prim_func
def two():
    T.evaluate(2)


def test_functions():
    assert_structural_equal_ignore_global_symbol(one, also_one)
    with pytest.raises(ValueError, match=r"<root>\.body\.value\.value"):
        assert_structural_equal_ignore_global_symbol(one, two)


def test_modules():
    @I.ir_module
    class Named:
        @T.prim_func
        def f():
            T.evaluate(1)

    assert_structural_equal_ignore_global_symbol(Named, weft.IRModule({"f": also_one}))


def test_the_name_of_a_block_is_no_structure():
    def make(name):
        @T.prim_func(private=True)
        def f(A: T.Buffer((4,), "int32")):
            for i in range(4):
                with T.block(name):
                    v = T.axis.spatial(4, i)
                    A[v] = 0

        return f

    weft.ir.assert_structural_equal(make("a"), make("b"))
