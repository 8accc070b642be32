"""find_anchor_block: the reduction with the most arithmetic of the entry of a module."""

from __future__ import annotations

import pytest

import weft
from tests.lib.tuning_programs import matmul, matmul_relu
from weft import te, tir
from weft.support.errors import IRValueError
from weft.tir.analysis.anchor_block import entry_func


def test_the_reduction_of_a_fused_function():
    assert tir.analysis.find_anchor_block(matmul_relu()).name_hint == "matmul"


def test_the_larger_of_two_reductions():
    x = te.placeholder((16, 16), name="x")
    k, r = te.reduce_axis((0, 16), name="k"), te.reduce_axis((0, 16), name="r")
    sums = te.compute((16,), lambda i: te.sum(x[i, r], axis=r), name="sums")
    product = te.compute((16, 16), lambda i, j: te.sum(x[i, k] * x[k, j], axis=k), name="product")
    total = te.compute((16, 16), lambda i, j: product[i, j] + sums[i], name="total")
    mod = weft.IRModule({"main": te.create_prim_func([x, total])})
    assert tir.analysis.find_anchor_block(mod).name_hint == "product"


def test_none_without_a_reduction_or_an_entry():
    x = te.placeholder((16,), name="x")
    twice = te.compute((16,), lambda i: x[i] * 2, name="twice")
    assert tir.analysis.find_anchor_block(te_module(x, twice)) is None
    two = weft.IRModule({"a": matmul()["main"], "b": matmul(8)["main"]})
    assert tir.analysis.find_anchor_block(two) is None
    with pytest.raises(IRValueError, match=r"found PrimFuncs \['a', 'b'\]"):
        entry_func(two)


def te_module(*tensors):
    return weft.IRModule({"main": te.create_prim_func(list(tensors))})
