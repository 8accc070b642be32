"""RemovePurityChecking: functions are taken as pure, calls that say they are become plain.

Dataflow blocks must be gone before, where there are such calls: they have none with effects.
"""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.transform import RemovePurityChecking, StaticPlanBlockMemory
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        @R.function
        def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            z = R.call_pure_packed("test.purity.f", y, sinfo_args=R.Tensor((4,), "float32"))
            return z

        a = R.call_pure_packed("test.purity.f", x, sinfo_args=R.Tensor((4,), "float32"))
        b = R.call_inplace_packed(
            "test.purity.g", a, x, inplace_indices=[0], sinfo_args=R.Tensor((4,), "float32")
        )
        c = R.invoke_pure_closure(inner, (b,), sinfo_args=R.Tensor((4,), "float32"))
        return c

    @R.function(pure=False)
    def impure(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.call_pure_packed("test.purity.f", x, sinfo_args=R.Tensor((4,), "float32"))
        return a


@I.ir_module
class Expected:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"relax.force_pure": True})

        @R.function
        def inner(y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            R.func_attr({"relax.force_pure": True})
            z = R.call_packed("test.purity.f", y, sinfo_args=R.Tensor((4,), "float32"))
            return z

        a = R.call_packed("test.purity.f", x, sinfo_args=R.Tensor((4,), "float32"))
        b = R.call_packed("test.purity.g", a, x, sinfo_args=R.Tensor((4,), "float32"))
        c = R.invoke_closure(inner, (b,), sinfo_args=R.Tensor((4,), "float32"))
        return c

    @R.function(pure=False)
    def impure(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.call_packed("test.purity.f", x, sinfo_args=R.Tensor((4,), "float32"))
        return a


def test_calls_that_are_said_to_be_pure():
    made = RemovePurityChecking()(Before)
    assert_structural_equal(made, Expected)
    assert relax.analysis.well_formed(made)


def test_a_second_run_changes_nothing():
    made = RemovePurityChecking()(Before)
    again = RemovePurityChecking()(made)
    assert all(again[name] is made[name] for name in ("main", "impure"))


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_both_compute_the_same(mode):
    def overwritten(a, b):
        a.copyfrom(a.numpy() * b.numpy())
        return a

    weft.register_func("test.purity.f", lambda x: weft.nd.array(x.numpy() + 1), override=True)
    weft.register_func("test.purity.g", overwritten, override=True)
    x = np.arange(4, dtype="float32")
    for mod in (Before, RemovePurityChecking()(Before)):
        executable = relax.build(mod, "llvm")
        main = executable.program.functions["main"]
        assert main.native is not None, main.why_not_native
        machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        np.testing.assert_array_equal(machine["main"](x.copy()).numpy(), (x + 1) * x + 1)


@I.ir_module
class Planned:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.exp(b)
            R.output(c)
        return c


@pytest.mark.parametrize("when", ["before", "after"])
def test_the_call_that_places_tensors_is_still_known(when):
    made = relax.get_pipeline("default")(Planned)
    steps = [relax.transform.ToNonDataflow(), relax.transform.CallTIRRewrite()]
    plan = [StaticPlanBlockMemory(), relax.transform.AssignOffsets()]
    purity = [RemovePurityChecking()]
    made = weft.transform.Sequential(
        [*purity, *steps, *plan] if when == "before" else [*steps, *plan, *purity]
    )(made)
    assert "vm.builtin.plan_offsets" in made.script()
    executable = relax.build(made, "llvm", relax_pipeline=None)
    main = executable.program.functions["main"]
    assert main.native is not None, main.why_not_native
    x = np.linspace(-1, 1, 5, dtype="float32")
    for mode in ("native", "bytecode"):
        machine = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        np.testing.assert_allclose(machine["main"](x).numpy(), np.exp(-np.exp(x)), rtol=1e-6)
