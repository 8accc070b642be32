"""Tuples and shapes as parameters of native functions; the bytecode gives the same results."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


def machines(mod):
    """A machine for each way to run; the function has a native form."""
    executable = relax.build(mod, "llvm")
    main = executable.program.functions["main"]
    assert main.native is not None, main.why_not_native
    return [relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode) for mode in MODES]


def both(mod, *args):
    """The result of both ways, as arrays and tuples."""
    native, bytecode = [plain(machine["main"](*args)) for machine in machines(mod)]
    np.testing.assert_equal(native, bytecode)
    return native


def both_errors(mod, *args):
    """The class and the message, which must be the same for both ways."""
    found = []
    for machine in machines(mod):
        with pytest.raises(weft.TVMError, match="main") as caught:
            machine["main"](*args)
        found.append((type(caught.value).__name__, str(caught.value)))
    assert found[0] == found[1]
    return found[0][1]


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value


def ones(*shape):
    return np.ones(shape, "float32")


@I.ir_module
class Tuples:
    @R.function
    def main(
        p: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n", 2), "float32"), R.Tuple())),
        k: R.Tensor((), "float32"),
    ):
        n = T.int64()
        a = p[0]
        b = p[1][0]
        c = R.add(R.expand_dims(a, 1), b)
        d = R.multiply(c, k)
        s = R.shape([n + 1])
        return (d, p, s)


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("kind", [tuple, list])
def test_tuples_are_opened(size, kind):
    a, b = ones(size), ones(size, 2)
    d, p, s = both(Tuples, kind([a, kind([b, kind([])])]), np.array(3, "float32"))
    np.testing.assert_array_equal(d, np.full((size, 2), 6))
    np.testing.assert_equal(p, (a, (b, ())))
    assert s == (size + 1,)


def test_arguments_that_do_not_fit_are_named():
    k = ones()
    assert both_errors(Tuples, (ones(2),), k) == (
        "main: argument 0 (p): expected a tuple of 2, got one of 1"
    )
    assert both_errors(Tuples, (ones(2), (ones(2, 2), 3)), k) == (
        "main: argument 0 (p)[1][1]: expected a tuple, got int"
    )
    assert "argument 0 (p): expected a tuple, got ndarray" in both_errors(Tuples, ones(2, 2), k)
    assert both_errors(Tuples, (ones(2), (ones(3, 2), ())), k) == (
        "main: argument 0 (p)[1][0]: expected shape (n, 2), n=2, got (3, 2)"
    )
    assert both_errors(Tuples, (ones(2), (ones(2, 2), ()))).startswith("main: expected 2 arguments")
    message = both_errors(Tuples, (ones(2), (ones(2, 2).astype("int32"), ())), k)
    assert message == "main: argument 0 (p)[1][0]: expected dtype float32, got int32"


@I.ir_module
class Shapes:
    @R.function
    def main(
        s: R.Shape(["a", 2, "a", "a + 1"]), x: R.Tensor(("a",), "float32"), u: R.Shape(ndim=2)
    ):
        a = T.int64()
        b, c = T.int64(), T.int64()
        v = R.match_cast(u, R.Shape([b, c]))
        y = R.add(x, R.const(1, "float32"))
        z = R.zeros((a, b), "float32")
        return (y, z, s, v, R.shape([c]))


@pytest.mark.parametrize("number", [int, np.int64, np.int32])
def test_shapes_give_values_to_symbols(number):
    s, u = tuple(number(i) for i in (3, 2, 3, 4)), [number(5), number(6)]
    y, z, s, v, c = both(Shapes, s, ones(3), u)
    np.testing.assert_array_equal(y, ones(3) * 2)
    assert z.shape == (3, 5)
    assert (s, v, c) == ((3, 2, 3, 4), (5, 6), (6,))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 2, 4, 4), "expected shape (a, 2, a, (a + 1)), a=3, got (3, 2, 4, 4)"),
        ((3, 3, 3, 4), "expected shape (a, 2, a, (a + 1)), a=3, got (3, 3, 3, 4)"),
        ((3, 2, 3), "expected shape (a, 2, a, (a + 1)), a=3, got (3, 2, 3)"),
        (3, "expected a shape, got int"),
    ],
)
def test_shapes_that_do_not_fit_are_named(shape, message):
    assert both_errors(Shapes, shape, ones(3), (1, 1)) == f"main: argument 0 (s): {message}"


def test_a_shape_and_a_tensor_must_agree():
    message = both_errors(Shapes, (3, 2, 3, 4), ones(4), (1, 1))
    assert message == "main: argument 1 (x): expected shape (a,), a=3, got (4,)"


def test_threads_and_repeated_calls_give_fresh_results():
    native, _ = machines(Tuples)
    args = ((ones(2), (ones(2, 2), ())), ones())
    first, second = native["main"](*args)[0], native["main"](*args)[0]
    first.copyfrom(np.zeros((2, 2), "float32"))
    np.testing.assert_array_equal(second.numpy(), np.full((2, 2), 2))


def test_memory_that_only_the_native_form_refuses_is_named():
    native, _ = machines(Tuples)
    strided = ones(2, 4)[:, ::2]
    message = r"main: argument 0\[1\]\[0\] \(p_1_0\): expected contiguous row-major data"
    with pytest.raises(ValueError, match=message):
        native["main"]((ones(2), (strided, ())), ones())
