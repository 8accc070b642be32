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


@I.ir_module
class Reshaped:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, (n * 2, 3))
            c = R.reshape(b, (n * 6,))
            d = R.nn.relu(c)
            e = R.nn.relu(x)
            f = R.reshape(e, (6, n))
            g = b, (c, b), d, e, f
            R.output(g)
        return g

    @R.function
    def one(x: R.Tensor(("n", 6), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, (n * 2, 3))
            g = (b,)
            R.output(g)
        return g


def test_a_view_that_is_returned_is_computed_where_it_is_returned():
    executable, native = machine(Reshaped)
    one = executable.program.functions["one"].native
    assert (one.arena, one.planned) == (0, None)  # there is nothing to copy from
    _, bytecode = machine(Reshaped, "bytecode")
    for n in (0, 1, 4):
        x = np.linspace(-1, 1, n * 6, dtype="float32").reshape(n, 6)
        for way in (native, bytecode):
            b, (c, again), d, e, f = way["main"](x)
            np.testing.assert_allclose(b.numpy(), np.exp(x).reshape(n * 2, 3), rtol=1e-5)
            np.testing.assert_array_equal(again.numpy(), b.numpy())
            np.testing.assert_array_equal(c.numpy(), b.numpy().reshape(-1))
            np.testing.assert_array_equal(d.numpy(), c.numpy())
            np.testing.assert_array_equal(e.numpy(), np.maximum(x, 0))
            np.testing.assert_array_equal(f.numpy(), e.numpy().reshape(6, n))
            e.numpy()[...] = 7  # results share no memory
            c.numpy()[...] = 7
            np.testing.assert_array_equal(f.numpy(), np.maximum(x, 0).reshape(6, n))
            np.testing.assert_allclose(b.numpy(), np.exp(x).reshape(n * 2, 3), rtol=1e-5)
