"""Passes that set attributes, and passes made of plain functions."""

from __future__ import annotations

import pytest

from weft.ir.module import IRModule
from weft.script import tir as T
from weft.target.target import Target
from weft.tir.transform import AnnotateEntryFunc, Apply, BindTarget, Filter, prim_func_pass


@T.prim_func
def main(a: T.Buffer((4,), "int32")):
    a[0] = 1


def module():
    return IRModule({"main": main, "other": main.with_attr("global_symbol", "other")})


def test_bind_target_keeps_what_a_function_says():
    own = Target("llvm -mcpu=skylake")
    mod = IRModule({"main": main, "other": main.with_attr("target", own)})
    after = BindTarget("llvm -num-cores=2")(mod)
    assert after["main"].attrs["target"] == Target("llvm -num-cores=2")
    assert after["other"].attrs["target"] == own


def test_the_only_function_is_the_entry():
    after = AnnotateEntryFunc()(IRModule({"main": main}))
    assert after["main"].attrs["tir.is_entry_func"]
    assert AnnotateEntryFunc()(after) is after
    mod = module()
    assert AnnotateEntryFunc()(mod) is mod


def test_apply_and_filter():
    marked = Apply(lambda func: func.with_attr("seen", 1))(module())
    assert all(func.attrs["seen"] == 1 for func in marked.functions.values())
    kept = Filter(lambda func: func.attrs["global_symbol"] == "other")(module())
    assert [var.name_hint for var in kept.functions] == ["other"]


def test_an_error_names_pass_and_function():
    @prim_func_pass(opt_level=0, name="Broken")
    def broken(func, mod, ctx):
        raise KeyError("inside")

    with pytest.raises(KeyError) as caught:
        broken(IRModule({"main": main}))
    notes = " ".join(caught.value.__notes__)
    assert "main" in notes
    assert "Broken" in notes
