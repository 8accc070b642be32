"""match_cast in functions that run as one native call; the bytecode gives the same results."""

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
    native, bytecode = (plain(machine["main"](*args)) for machine in machines(mod))
    np.testing.assert_equal(native, bytecode)
    return native


def both_errors(mod, *args):
    """The messages of both ways, which must be the same."""
    messages = []
    for machine in machines(mod):
        with pytest.raises(ValueError, match="main") as caught:
            machine["main"](*args)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    return messages[0]


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value


def zeros(*shape):
    return np.zeros(shape, "float32")


@I.ir_module
class Square:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        n, k = T.int64(), T.int64()
        y = R.add(x, R.const(1, "float32"))
        z = R.match_cast(y, R.Tensor((k, k), "float32"))
        w = R.matmul(z, z)
        s = R.shape([k * 2, n])
        return (w, s)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_new_symbols_are_those_of_the_inputs(size):
    w, s = both(Square, zeros(size, size))
    np.testing.assert_array_equal(w, np.full((size, size), size))
    assert s == (size * 2, size)


def test_a_match_that_fails_says_what_it_expected():
    message = both_errors(Square, zeros(2, 3))
    assert message == "main: match_cast z: expected shape (k, k), k=2, got (2, 3)"


@I.ir_module
class Unknown:
    @R.function
    def main(x: R.Tensor("float32", ndim=2), y: R.Tensor("float32", ndim=1)):
        n, m = T.int64(), T.int64()
        a = R.match_cast(x, R.Tensor((n, m), "float32"))
        b = R.match_cast(y, R.Tensor((m + 1,), "float32"))
        c = R.add(a, R.zeros((n, m), "float32"))
        d = R.exp(b)
        return (c, d)


def test_parameters_of_known_rank_are_native():
    c, d = both(Unknown, zeros(2, 3), zeros(4))
    assert c.shape == (2, 3)
    assert d.shape == (4,)


def test_known_symbols_are_compared_and_shown():
    assert both_errors(Unknown, zeros(2, 3), zeros(3)) == (
        "main: match_cast b: expected shape ((m + 1),), m=3, got (3,)"
    )


@pytest.mark.parametrize("mode", [0, 1])
def test_the_rank_of_a_parameter_is_checked(mode):
    with pytest.raises(ValueError, match=r"main: argument 0 \(x\): expected .*, got .*\(3,\)"):
        machines(Unknown)[mode]["main"](zeros(3), zeros(4))


@I.ir_module
class Static:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        y = R.match_cast(x, R.Tensor((4,), "float32"))
        s = R.match_cast(R.shape([n, 2]), R.Shape([4, 2]))
        r = R.match_cast(y, R.Tensor("float32", ndim=1))
        z = R.add(y, y)
        return (z, s, r)


def test_constants_and_shapes_are_compared():
    z, s, r = both(Static, zeros(4))
    np.testing.assert_array_equal(r, zeros(4))
    np.testing.assert_array_equal(z, zeros(4))
    assert s == (4, 2)
    assert both_errors(Static, zeros(5)) == ("main: match_cast y: expected shape (4,), got (5,)")


@I.ir_module
class Inlined:
    @R.function(private=True)
    def half(x: R.Tensor((4, 4), "float32")):
        k, m = T.int64(), T.int64()
        y = R.match_cast(x, R.Tensor((k, m), "float32"))
        return R.add(y, y)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        cls = Inlined
        a = cls.half(x)
        b = R.match_cast(a, R.Tensor((4, 4), "float32"))
        c = cls.half(b)
        return c


def test_a_function_that_matches_is_inlined_twice():
    np.testing.assert_array_equal(both(Inlined, np.ones((4, 4), "float32")), np.full((4, 4), 4))


@I.ir_module
class Never:
    @R.function
    def main(x: R.Tensor(("n",))):
        y = R.match_cast(x, R.Tensor(ndim=1, dtype="float32"))
        return y


def test_what_the_entry_cannot_check_runs_as_bytecode():
    executable = relax.build(Never, "llvm")
    main = executable.program.functions["main"]
    assert main.native is None
    assert main.why_not_native == "the shape or the dtype of x is not known"
    machine = relax.VirtualMachine(executable, weft.cpu())
    assert machine["main"](zeros(2)).shape == (2,)
    with pytest.raises(TypeError, match="match_cast y: expected dtype float32, got int32"):
        machine["main"](np.zeros(2, "int32"))
