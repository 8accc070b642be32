"""Inlining of calls: symbols, dataflow variables, recursion. Binding is tested with its passes."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.analysis import well_formed
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRValueError


def inlined(mod, name="helper"):
    func = mod["main"].inline_functions({name: mod[name]})
    made = weft.IRModule({"main": func})
    assert well_formed(made)
    assert name not in func.script()
    return made


def test_a_dataflow_block_is_inlined_into_a_plain_one():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def helper(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            with R.dataflow():
                a = R.add(x, x)
                b = R.exp(a)
                R.output(b)
            return b

        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            y = Module.helper(x)
            z = Module.helper(y)
            return z

    machine = relax.VirtualMachine(relax.build(inlined(Module), "llvm"), weft.cpu())
    data = np.array([0, 0.5, -1], "float32")
    found = machine["main"](weft.nd.array(data)).numpy()
    np.testing.assert_allclose(found, np.exp(2 * np.exp(2 * data)), rtol=1e-5)


def test_symbols_come_from_shapes_and_tuples_too():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def helper(x: R.Tuple(R.Tensor(("n",), "float32")), s: R.Shape(["m"])) -> R.Tensor(
            ("n", "m"), "float32"
        ):
            n, m = T.int64(), T.int64()
            y = x[0]
            z: R.Tensor((n, 1), "float32") = R.expand_dims(y, 1)
            w: R.Tensor((n, m), "float32") = R.broadcast_to(z, R.shape([n, m]))
            return w

        @R.function
        def main(x: R.Tuple(R.Tensor((3,), "float32"))) -> R.Tensor((3, 2), "float32"):
            y: R.Tensor((3, 2), "float32") = Module.helper(x, R.shape([2]))
            return y

    infos = [b.var.struct_info for b in inlined(Module)["main"].body.blocks[0].bindings]
    assert infos[-1] == relax.TensorStructInfo((3, 2), "float32")


def test_a_function_that_calls_itself_is_refused():
    @I.ir_module
    class Module:
        @R.function(private=True)
        def helper(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            y: R.Tensor((3,), "float32") = Module.helper(x)
            return y

        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            y: R.Tensor((3,), "float32") = Module.helper(x)
            return y

    with pytest.raises(IRValueError, match="helper calls itself .helper -> helper."):
        Module["main"].inline_functions({"helper": Module["helper"]})
