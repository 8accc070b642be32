"""Recursion takes memory, not the stack; endless recursion is an error in every way to run."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.runtime.vm.stack import MAX_DEPTH
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Recursive:
    @R.function
    def forever(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        y: R.Tensor((), "float32") = Recursive.forever(x)
        return y

    @R.function
    def down(i: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32")) -> R.Tensor(
        ("n",), "float32"
    ):
        n = T.int64()
        stop: R.Tensor((), "bool") = R.equal(i, R.const(0, "int32"))
        if stop:
            r: R.Tensor((n,), "float32") = x
        else:
            j: R.Tensor((), "int32") = R.subtract(i, R.const(1, "int32"))
            y: R.Tensor((n,), "float32") = R.add(x, R.const(1, "float32"))
            r: R.Tensor((n,), "float32") = Recursive.down(j, y)
        return r

    @R.function
    def local(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def total(k: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            stop: R.Tensor((), "bool") = R.less_equal(k, R.const(0, "int32"))
            if stop:
                r: R.Tensor((), "int32") = k
            else:
                below: R.Tensor((), "int32") = total(R.subtract(k, R.const(1, "int32")))
                r: R.Tensor((), "int32") = R.add(k, below)
            return r

        s: R.Tensor((), "int32") = total(i)
        return s


@pytest.fixture(scope="module")
def machine():
    return relax.VirtualMachine(relax.build(Recursive), weft.cpu())


def test_bytecode_has_no_limit_for_what_calls_itself_last():
    bytecode = relax.VirtualMachine(relax.build(Recursive), weft.cpu(), exec_mode="bytecode")
    depth = 3 * MAX_DEPTH // 2
    found = bytecode["down"](np.array(depth, "int32"), np.zeros(2, "float32"))
    np.testing.assert_array_equal(found.numpy(), [depth, depth])
    with pytest.raises(weft.TVMError, match="a recursion needs an end"):
        bytecode["local"](np.array(depth, "int32"))


@pytest.mark.parametrize("depth", [0, 1, 2000])
def test_deep_recursion(machine, depth):
    found = machine["down"](np.array(depth, "int32"), np.zeros(2, "float32"))
    np.testing.assert_array_equal(found.numpy(), [depth, depth])
    assert machine["local"](np.array(depth, "int32")).numpy() == depth * (depth + 1) // 2


def test_recursion_after_default_build():
    mod = weft.IRModule({name: Recursive[name] for name in ("down",)})
    executable = relax.build(mod, relax_pipeline="default_build")
    run = relax.VirtualMachine(executable, weft.cpu())["down"]
    assert run(np.array(1500, "int32"), np.zeros(1, "float32")).numpy() == 1500


def test_endless_recursion_is_an_error(machine):
    with pytest.raises(weft.TVMError, match="forever: calls are nested more than 50000 deep"):
        machine["forever"](np.array(1, "float32"))


def test_endless_recursion_under_an_instrument_is_an_error():
    watched = relax.VirtualMachine(relax.build(Recursive), weft.cpu())
    watched.set_instrument(lambda *_: None)
    with pytest.raises(weft.TVMError, match="a recursion needs an end"):
        watched["forever"](np.array(1, "float32"))
