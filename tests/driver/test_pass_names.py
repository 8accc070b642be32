"""A PassContext is told when a pass or an instrument that it is given does not exist."""

import pytest

import weft
from weft import relax, tir
from weft.driver.pass_names import own_names, pass_names
from weft.ir.instrument import PassInstrument
from weft.ir.transform import Pass, PassContext, module_pass
from weft.support.errors import PassError

WRONG = {
    "a name with another ending": (
        {"disabled_pass": ["FuseOp"]}, "disabled_pass: there is no pass 'FuseOp'; did you mean 'Fus"
    ),
    "a name without its package": (
        {"required_pass": ["UnrollLoop"]}, "there is no pass 'UnrollLoop'; did you mean 'tir.Unrol"
    ),
    "a name like no other": (
        {"disabled_pass": ["Xyzzy"]},
        r"there is no pass 'Xyzzy' \(one of your own is known once it is defined\)",
    ),
    "a pass": (
        {"disabled_pass": [tir.transform.Simplify()]}, "expected names of passes, got FunctionPass",
    ),
    "a text": ({"disabled_pass": "FuseOps"}, r"expected a list, got str; write \['FuseOps'\]"),
    "a level": ({"opt_level": "3"}, "opt_level: expected an int, 0 to 4, got str"),
    "a number": (
        {"instruments": [5]}, r"instruments\[0\]: expected an object with one of enter_pass_ctx,.*"
        "got int",
    ),
    "a class": (
        {"instruments": [PassInstrument(), PassInstrument]},
        r"instruments\[1\]: expected an object, got the class PassInstrument; make one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_exist_is_an_error(what):
    options, message = WRONG[what]
    with pytest.raises(PassError, match=message):
        PassContext(**options)


def test_instruments_are_checked_when_they_are_replaced():
    with PassContext() as context, pytest.raises(PassError, match="instruments"):
        context.override_instruments([print])
    assert context.instruments == []


def test_every_pass_of_ours_and_of_the_user_may_be_named():
    @module_pass(opt_level=0, name="tests.Mine")
    def mine(mod, ctx):
        return mod

    names = ["tests.Mine", "FuseOps", "LegalizeOps", "tir.Simplify", "tir.HoistExpression"]
    assert PassContext(disabled_pass=names, required_pass=names).disabled_pass == tuple(names)
    for package in (relax.transform, tir.transform):
        for name in dir(package):
            try:
                step = getattr(package, name)()
            except (TypeError, AttributeError, weft.TVMError):
                continue
            if isinstance(step, Pass):
                assert step.info.name in pass_names()
    assert "DecomposeOpsForInference" not in own_names()  # its name is DecomposeOps
    assert "FusionPattern" not in own_names()
