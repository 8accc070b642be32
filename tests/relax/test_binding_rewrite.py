"""DataflowBlockRewrite: edits of a block, its function and its module."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np
import pytest

from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax import op
from weft.relax.analysis import name_to_binding, well_formed
from weft.relax.reference import run
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRTypeError, IRValueError

X = np.arange(6, dtype="float32").reshape(2, 3)


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(x)
            c = R.add(a, a)
            R.output(c)
        return c


@pytest.fixture
def rewriter():
    func = Module["main"]
    return relax.DataflowBlockRewrite(func.body.blocks[0], func)


def variable(name):
    (binding,) = name_to_binding(Module["main"])[name]
    return binding.var


def test_uses_are_replaced_and_the_rest_removed(rewriter):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                b = R.sin(x)
                c = R.add(b, b)
                R.output(c)
            return c

    with pytest.raises(IRValueError, match="remove_unused: a is used by c"):
        rewriter.remove_unused(variable("a"))
    rewriter.replace_all_uses(variable("a"), variable("b"))
    rewriter.remove_unused(variable("a"))
    made = rewriter.mutate_irmodule(Module)
    assert_structural_equal(made, Expected)
    assert well_formed(made)
    assert made["main"] is rewriter.mutated_root_fn()
    assert made["main"].body.blocks[0] is rewriter.mutated_dfb()
    np.testing.assert_array_equal(run(made, "main", X), run(Expected, "main", X))


def test_bindings_are_added_at_the_end(rewriter):
    rewriter.add(op.tan(op.cos(variable("a"))), is_dfvar=True)
    rewriter.add(variable("b"), "named")
    binding = relax.VarBinding(relax.DataflowVar("own", variable("a").struct_info), variable("a"))
    rewriter.add_binding(binding)
    names = [item.var.name_hint for item in rewriter.mutated_dfb().bindings]
    assert names == ["a", "b", "c", "lv", "tmp0", "named", "own"]
    kinds = [isinstance(item.var, relax.DataflowVar) for item in rewriter.mutated_dfb().bindings]
    assert kinds == [True, True, False, True, True, False, True]
    assert well_formed(rewriter.mutate_irmodule(Module))


def test_all_unused_bindings_are_removed(rewriter):
    rewriter.remove_all_unused()
    assert [item.var.name_hint for item in rewriter.mutated_dfb().bindings] == ["a", "c"]
    assert Module["main"].body.blocks[0].bindings[1].var.name_hint == "b"  # as it was


def test_an_empty_block_goes():
    @I.ir_module
    class Dead:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                R.output(a)
            return x

    func = Dead["main"]
    for how in ("one", "all"):
        rewriter = relax.DataflowBlockRewrite(func.body.blocks[0], func)
        if how == "one":
            rewriter.remove_unused(func.body.blocks[0].bindings[0].var)
        else:
            rewriter.remove_all_unused()
        assert not rewriter.mutated_root_fn().body.blocks
        assert not rewriter.mutated_dfb().bindings


def test_what_does_not_fit_is_refused(rewriter):
    with pytest.raises(IRValueError, match="the block defines no whatever"):
        rewriter.remove_unused(relax.Var("whatever"))
    rewriter.remove_unused(relax.Var("whatever"), allow_undef=True)
    assert rewriter.mutated_root_fn() is Module["main"]
    with pytest.raises(IRValueError, match="the module does not have the function"):
        rewriter.mutate_irmodule(relax.transform.RemovePurityChecking()(Module))
    with pytest.raises(IRValueError, match="the block is not in the function"):
        relax.DataflowBlockRewrite(relax.DataflowBlock([]), Module["main"])
    with pytest.raises(IRTypeError, match="expected a DataflowBlock and the Function it is in"):
        relax.DataflowBlockRewrite(Module["main"], Module["main"])
