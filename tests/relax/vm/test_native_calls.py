"""Calls of graph functions in one native call, at other sizes too; the bytecode does the same."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MODES = ("native", "bytecode")


def machines(mod, name="main"):
    """A machine for each way to run; the function has a native form."""
    executable = relax.build(mod, "llvm")
    function = executable.program.functions[name]
    assert function.native is not None, function.why_not_native
    return [relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode) for mode in MODES]


def both(mod, *args, name="main"):
    """The result of both ways, as arrays and tuples."""
    native, bytecode = (plain(machine[name](*args)) for machine in machines(mod, name))
    np.testing.assert_equal(native, bytecode)
    return native


def both_errors(mod, *args, name="main"):
    """The class and message of both ways, which must be the same."""
    found = []
    for machine in machines(mod, name):
        with pytest.raises(weft.TVMError, match=r"\w") as caught:
            machine[name](*args)
        found.append((type(caught.value).__name__, str(caught.value)))
    assert found[0] == found[1]
    return found[0][1]


def plain(value):
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value


def ramp(*shape):
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


@I.ir_module
class Sizes:
    @R.function(private=True)
    def doubled(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        y = R.concat((x, x), axis=0)
        z = R.reshape(y, R.shape([2, n]))
        return z

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        cls = Sizes
        n, m = T.int64(), T.int64()
        a = R.reshape(x, R.shape([n * m]))
        b = cls.doubled(a)
        c = R.sum(x, axis=1)
        d = cls.doubled(c)
        return (b, d)


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4)])
def test_one_function_at_two_sizes(shape):
    x = ramp(*shape)
    b, d = both(Sizes, x)
    np.testing.assert_array_equal(b, np.stack([x.ravel(), x.ravel()]))
    np.testing.assert_array_equal(d, np.stack([x.sum(1), x.sum(1)]))


@I.ir_module
class Square:
    @R.function
    def square(x: R.Tensor(("n", "n"), "float32"), k: R.Prim("int64")):
        y = R.matmul(x, x)
        return y

    @R.function
    def main(x: R.Tensor(("m", "k"), "float32"), n: R.Prim("int64")):
        y = Square.square(x, n)
        return y

    @R.function
    def shaped(s: R.Shape(("n", "m"))):
        n, m = T.int64(), T.int64()
        y = Square.full(R.shape([n + 1, m]), R.prim_value(n * m))
        return y

    @R.function
    def full(s: R.Shape(("a", "b")), p: R.Prim(value="a * b")):
        a, b = T.int64(), T.int64()
        y = R.full(R.shape([a, b]), R.const(1, "float32"), "float32")
        return (y, R.prim_value(a * b))

    @R.function
    def tuples(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        z = Square.added(x, (x, y))
        return z

    @R.function
    def added(x: R.Tensor(("n",), "float32"), p: R.Tuple(R.Tensor, R.Tensor(("n",), "float32"))):
        y = R.add(x, p[1])
        return y


def test_what_is_not_proved_is_compared_with_the_error_of_the_bytecode():
    np.testing.assert_array_equal(both(Square, ramp(2, 2), 5), ramp(2, 2) @ ramp(2, 2))
    message = both_errors(Square, ramp(2, 3), 5)
    assert message == "square: argument 0 (x): expected shape (n, n), n=2, got (2, 3)"


def test_shapes_and_numbers_are_arguments():
    executable = relax.build(Square)
    for mode in MODES:
        run = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)["shaped"]
        with pytest.raises(ValueError, match=r"full: argument 1 \(p\): expected 9 \(.*\), got 6"):
            run((2, 3))
        made, count = run((0, 0))
        assert (made.shape, count) == ((1, 0), 0)
    assert executable.program.functions["shaped"].native is not None


def test_fields_of_a_tuple_are_compared():
    np.testing.assert_array_equal(both(Square, ramp(3), ramp(3), name="tuples"), 2 * ramp(3))
    message = both_errors(Square, ramp(3), ramp(2), name="tuples")
    assert message == "added: argument 1 (p)[1]: expected shape (n,), n=3, got (2,)"


@I.ir_module
class Numbers:
    @R.function
    def main(k: R.Prim(value="n // 2"), x: R.Tensor(("n",), "float32"), again: R.Prim(value="n")):
        n = T.int64()
        y = R.strided_slice(x, [0], [0], [n // 2], [1])
        return (y, k, R.prim_value(n // 2 + 1))


def test_a_parameter_that_is_an_expression_over_symbols():
    y, k, more = both(Numbers, 2, ramp(5), 5)
    np.testing.assert_array_equal(y, ramp(2))
    assert (k, more) == (2, 3)
    message = both_errors(Numbers, 3, ramp(5), 5)
    assert message == "main: argument 0 (k): expected 2 ((n // 2)), got 3"


@I.ir_module
class Effects:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), ok: R.Tensor((), "bool")):
        n = T.int64()
        s = R.shape_of(x)
        t = R.shape_to_tensor(s)
        y = R.add(x, x)
        _ = R.print(y, R.prim_value(n), format="{} of {}")
        _1 = R.assert_op(ok, [y, R.prim_value(n)], format="{} {}")
        _2 = R.assert_op(R.prim_value(n < 4), R.prim_value(n), format="too long: {}")
        return (s, t, y)


def test_tuples_are_printed_with_their_fields(capsys):
    printed = weft.get_global_func("vm.builtin.print")
    one = weft.nd.array(np.array(1))
    printed("", (one, one), one, ((2,),))
    printed("{0:.1f} {1}", weft.nd.array(np.array(0.25)), (one,))
    assert capsys.readouterr().out == "(1, 1) 1 ((2,),)\n0.2 (1,)\n"
    with pytest.raises(AssertionError, match="Assertion Failed: 1, 1"):
        weft.get_global_func("vm.builtin.assert_op")(False, "", one, one)


def test_prints_assertions_and_shapes_as_values(capsys):
    s, t, y = both(Effects, ramp(3), np.array(True))
    assert s == (3,)
    np.testing.assert_array_equal(t, np.array([3], "int64"))
    np.testing.assert_array_equal(y, 2 * ramp(3))
    assert capsys.readouterr().out == "[0. 2. 4.] of 3\n" * 2
    with pytest.raises(AssertionError):
        both(Effects, ramp(2), np.array(False))
    assert both_errors(Effects, ramp(2), np.array(False)) == "Assertion Failed: [0. 2.] 2"
    assert both_errors(Effects, ramp(5), np.array(True)) == "Assertion Failed: too long: 5"


@I.ir_module
class Closures:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor((), "float32")):
        @R.function
        def scaled(y: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
            m = T.int64()
            z: R.Tensor((m,), "float32") = R.multiply(y, w)
            return z

        a = scaled(x)
        both_of = R.concat((a, a), axis=0)
        b = scaled(both_of)
        return (a, b)

    @R.function
    def escapes(w: R.Tensor((), "float32")):
        @R.function
        def scaled(y: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
            z: R.Tensor((), "float32") = R.multiply(y, w)
            return z

        return scaled


def test_local_functions_run_in_place():
    a, b = both(Closures, ramp(3), np.array(2, "float32"))
    np.testing.assert_array_equal(a, 2 * ramp(3))
    np.testing.assert_array_equal(b, 4 * np.concatenate([ramp(3), ramp(3)]))


def test_a_function_that_escapes_is_a_closure():
    executable = relax.build(Closures)
    machine = relax.VirtualMachine(executable, weft.cpu())
    assert "a function as a result" in executable.program.functions["escapes"].why_not_native
    scaled = machine["escapes"](np.array(3, "float32"))
    assert machine.invoke_closure(scaled, np.array(2, "float32")).numpy() == 6
