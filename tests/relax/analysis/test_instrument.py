"""WellFormedInstrument: a pass that makes an ill-formed module is named."""

from __future__ import annotations

import pytest

import weft
from weft import relax
from weft.ir.transform import PassContext, module_pass
from weft.relax.analysis.instrument import WellFormedInstrument
from weft.script import relax as R
from weft.support.errors import VerifyError


def good_module():
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return x

    return weft.IRModule({"main": main})


def bad_module():
    x, y = (relax.Var(name, relax.TensorStructInfo((2,), "float32")) for name in "xy")
    body = relax.SeqExpr([], y)
    func = relax.Function([x], body, ret_struct_info=y.struct_info)
    return weft.IRModule({"main": func.with_attr("global_symbol", "main")})


@module_pass(opt_level=0, name="Spoil")
def spoil(mod, ctx):
    return bad_module()


@module_pass(opt_level=0, name="Same")
def same(mod, ctx):
    return mod


def test_the_pass_that_spoils_is_named():
    with PassContext(instruments=[WellFormedInstrument()]):
        same(good_module())
        with pytest.raises(VerifyError, match="after pass Spoil"):
            spoil(good_module())
        with pytest.raises(VerifyError, match="before pass Same"):
            same(bad_module())


def test_the_check_before_can_be_left_out():
    with PassContext(instruments=[WellFormedInstrument(validate_before_transform=False)]):
        with pytest.raises(VerifyError, match="after pass Same"):
            same(bad_module())


def test_it_stands_where_users_look_for_it():
    from weft.relax.ir import instrument

    assert instrument.WellFormedInstrument is WellFormedInstrument
