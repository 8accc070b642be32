"""Graphs that name devices: they run where all of these are the CPU."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R


@I.ir_module
class Moved:
    I.module_global_infos({"vdevice": [I.vdevice("llvm"), I.vdevice("cuda")]})

    @R.function
    def to_cpu(x: R.Tensor(("n",), "float32")):
        y = R.to_vdevice(x, "llvm")
        z = R.hint_on_device(R.add(y, y), R.cpu())
        return z

    @R.function
    def to_gpu(x: R.Tensor((3,), "float32")):
        return R.to_vdevice(x, "cuda")


def run(name):
    machine = relax.VirtualMachine(relax.build(Moved, "llvm"), weft.cpu())
    return machine[name](weft.nd.array(np.arange(3, dtype="float32")))


def test_a_tensor_on_the_cpu_stays_there():
    np.testing.assert_array_equal(run("to_cpu").numpy(), [0, 2, 4])


def test_another_device_is_an_error():
    with pytest.raises(weft.TVMError, match=r"expected the CPU \(1, 0\), got device \(2, 0\)"):
        run("to_gpu")


def test_a_device_in_a_graph_is_printed_and_stored():
    @R.function
    def hinted(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        y = R.hint_on_device(x, R.device("cuda", 1))
        return y

    assert "R.hint_on_device(x, dst_vdevice=R.device(2, 1))" in hinted.script()
    weft.ir.assert_structural_equal(weft.script.from_source(hinted.script()), hinted)
    weft.ir.assert_structural_equal(weft.ir.load_json(weft.ir.save_json(hinted)), hinted)
