"""Views and constants in functions that run as one native call."""

import numpy as np

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


@I.ir_module
class Views:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, (n * 2, 3))
            c = R.add(b, b)
            d = R.reshape(c, (n * 6,))
            e = R.nn.relu(d)
            f = R.reshape(e, (6, n))
            R.output(f)
        return f


def machine(mod, mode="native"):
    executable = relax.build(mod, "llvm")
    return executable, relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)


def test_reshapes_inside_do_not_copy():
    executable, native = machine(Views)
    assert not [name for name in executable.kernels.functions if name.startswith("reshape1")]
    assert executable.program.functions["main"].native is not None
    _, bytecode = machine(Views, "bytecode")
    for n in (0, 1, 4):
        x = np.linspace(-1, 1, n * 6, dtype="float32").reshape(n, 6)
        expected = (2 * np.exp(x)).reshape(6, n)
        for way in (native, bytecode):
            np.testing.assert_allclose(way["main"](x).numpy(), expected, rtol=1e-5)


@I.ir_module
class Returned:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")):
        view = R.reshape(x, (3, 2))
        one = R.const([1.0, 2.0], "float32")
        return view, (one, view), one


def test_what_is_returned_can_be_written_without_harm():
    executable = relax.build(Returned, "llvm", pipeline=None)
    assert executable.program.functions["main"].native is not None
    for mode in ("native", "bytecode"):
        vm = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)
        x = np.arange(6, dtype="float32").reshape(2, 3)
        for _ in range(2):
            view, (one, again), _ = vm["main"](x.copy())
            np.testing.assert_array_equal(view.numpy(), x.reshape(3, 2))
            np.testing.assert_array_equal(again.numpy(), x.reshape(3, 2))
            np.testing.assert_array_equal(one.numpy(), [1, 2])
            one.copyfrom(np.array([7, 7], "float32"))
