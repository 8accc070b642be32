"""Functions that call themselves, natively; the bytecode and the interpreter give the same."""

import resource
import sys
import threading

import numpy as np
import pytest

import weft
from tests.lib.graph_ways import errors, everywhere, machines
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def number(value):
    return np.array(value, "int32")


@I.ir_module
class Loops:
    @R.function
    def loop(
        i: R.Tensor((), "int32"), s: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 3), "float32")
    ) -> R.Tensor(("n", 3), "float32"):
        n = T.int64()
        more = R.less(i, R.const(5, "int32"))
        if more:
            a = R.matmul(s, w)
            b = R.nn.relu(a)
            j = R.add(i, R.const(1, "int32"))
            r: R.Tensor((n, 3), "float32") = Loops.loop(j, b, w)
        else:
            r: R.Tensor((n, 3), "float32") = s
        return r

    @R.function
    def main(s: R.Tensor(("m", 3), "float32"), w: R.Tensor((3, 3), "float32")):
        m = T.int64()
        a: R.Tensor((m, 3), "float32") = Loops.loop(R.const(0, "int32"), s, w)
        both = R.concat((a, s), axis=0)
        b: R.Tensor((m * 2, 3), "float32") = Loops.loop(R.const(3, "int32"), both, w)
        return (a, b)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_a_loop_at_two_sizes(rows):
    s = (np.arange(rows * 3, dtype="float32") - 5).reshape(rows, 3)
    w = np.array([[1, 0.5, -1], [0, -0.5, 1], [0.5, 1, 0]], "float32")  # exact in every order
    a, b = everywhere(Loops, "main", s, w)
    assert a.shape == (rows, 3)
    np.testing.assert_array_equal(a, everywhere(Loops, "loop", number(0), s, w))
    np.testing.assert_array_equal(
        b, everywhere(Loops, "loop", number(3), np.concatenate([a, s]), w)
    )


@I.ir_module
class Mutual:
    @R.function
    def even(i: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32")) -> R.Tuple(
        R.Tensor(("n",), "float32"), R.Tensor((), "bool")
    ):
        n = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            r: R.Tuple(R.Tensor((n,), "float32"), R.Tensor((), "bool")) = (x, stop)
        else:
            y = R.add(x, x)
            j = R.subtract(i, R.const(1, "int32"))
            r: R.Tuple(R.Tensor((n,), "float32"), R.Tensor((), "bool")) = Mutual.odd((j, y))
        return r

    @R.function
    def odd(p: R.Tuple(R.Tensor((), "int32"), R.Tensor(("m",), "float32"))) -> R.Tuple(
        R.Tensor(("m",), "float32"), R.Tensor((), "bool")
    ):
        m = T.int64()
        i = p[0]
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            no = R.logical_not(stop)
            r: R.Tuple(R.Tensor((m,), "float32"), R.Tensor((), "bool")) = (p[1], no)
        else:
            y = R.add(p[1], R.const(1, "float32"))
            j = R.subtract(i, R.const(1, "int32"))
            r: R.Tuple(R.Tensor((m,), "float32"), R.Tensor((), "bool")) = Mutual.even(j, y)
        return r


@pytest.mark.parametrize("depth", [0, 1, 2, 7])
def test_functions_that_call_each_other(depth):
    x, is_even = everywhere(Mutual, "even", number(depth), np.arange(3, dtype="float32"))
    expected = np.arange(3, dtype="float32")
    for step in range(depth):
        expected = expected + 1 if step % 2 else expected * 2
    np.testing.assert_array_equal(x, expected)
    assert is_even == (depth % 2 == 0)


@I.ir_module
class Fibonacci:
    @R.function
    def main(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        small = R.less(i, R.const(2, "int64"))
        if small:
            r: R.Tensor((), "int64") = i
        else:
            a: R.Tensor((), "int64") = Fibonacci.main(R.subtract(i, R.const(1, "int64")))
            b: R.Tensor((), "int64") = Fibonacci.main(R.subtract(i, R.const(2, "int64")))
            r: R.Tensor((), "int64") = R.add(a, b)
        return r


def test_two_calls_in_one_activation():
    assert everywhere(Fibonacci, "main", np.array(12, "int64")) == 144


@I.ir_module
class Local:
    @R.function
    def main(i: R.Tensor((), "int32"), w: R.Tensor(("n",), "float32"), s: R.Shape(("k", 2))):
        n, k = T.int64(), T.int64()

        @R.function
        def summed(j: R.Tensor((), "int32")) -> R.Tensor((n,), "float32"):
            stop = R.less_equal(j, R.const(0, "int32"))
            if stop:
                r: R.Tensor((n,), "float32") = R.full((n,), R.const(0, "float32"), "float32")
            else:
                below: R.Tensor((n,), "float32") = summed(R.subtract(j, R.const(1, "int32")))
                r: R.Tensor((n,), "float32") = R.add(below, w)
            return r

        a: R.Tensor((n,), "float32") = summed(i)
        return (a, R.shape([k, n]))


def test_a_local_function_with_captured_values():
    w = np.array([1, 2, 4], "float32")
    a, shape = everywhere(Local, "main", number(5), w, (7, 2))
    np.testing.assert_array_equal(a, 5 * w)
    assert shape == (7, 3)


@I.ir_module
class Kinds:
    @R.function
    def main(
        i: R.Tensor((), "int32"),
        t: R.Tensor("float32", ndim=1),
        s: R.Shape(ndim=1),
        k: R.Prim("int64"),
        m: R.Prim(value="m"),
    ) -> R.Tuple(R.Tensor((2,), "int64"), R.Prim(value="m"), R.Shape(("m", 1))):
        m = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            n = T.int64()
            _x = R.match_cast(t, R.Tensor((n,), "float32"))
            _y = R.match_cast(s, R.Shape([n + 1]))
            made: R.Tensor((2,), "int64") = R.shape_to_tensor(R.shape([n, m]))
        else:
            j = R.subtract(i, R.const(1, "int32"))
            p: R.Tuple(R.Tensor((2,), "int64"), R.Prim(value=m), R.Shape([m, 1])) = Kinds.main(
                j, t, s, k, R.prim_value(m)
            )
            made: R.Tensor((2,), "int64") = p[0]
        return (made, R.prim_value(m), R.shape([m, 1]))


def test_arguments_of_every_kind_and_a_cast_that_fails_deep_inside():
    t = np.zeros(4, "float32")
    made, m, shape = everywhere(Kinds, "main", number(3), t, (5,), 1, 9)
    assert (made.tolist(), m, shape) == ([4, 9], 9, (9, 1))
    message = errors(Kinds, "main", number(3), t, (6,), 1, 9)
    assert message == "main: match_cast _y: expected shape ((n + 1),), n=4, got (6,)"


@I.ir_module
class Outside:
    @R.function(pure=False)
    def main(i: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32")) -> R.Tensor(
        ("n",), "float32"
    ):
        n = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            _ = R.print(x, format="end: {}")
            r: R.Tensor((n,), "float32") = x
        else:
            y = R.call_dps_packed("test.recursion.step", (i, x), R.Tensor((n,), "float32"))
            j = R.subtract(i, R.const(1, "int32"))
            r: R.Tensor((n,), "float32") = Outside.main(j, y)
        return r


def test_python_is_called_back_at_each_depth(capsys):
    kept = []

    def step(i, x, out):
        kept.append(x)
        if i.item() == 13:
            raise ValueError("unlucky")
        out.copyfrom(x.numpy() + i.item())

    weft.register_func("test.recursion.step", step, override=True)
    for machine in machines(Outside, "main"):
        kept.clear()
        result = machine["main"](number(3), np.zeros(2, "float32"))
        np.testing.assert_array_equal(result.numpy(), [6, 6])
        assert [x.numpy().tolist() for x in kept] == [[0, 0], [3, 3], [5, 5]]
        assert capsys.readouterr().out == "end: [6. 6.]\n"
        with pytest.raises(ValueError, match="unlucky"):
            machine["main"](number(20), np.zeros(2, "float32"))


@I.ir_module
class Wide:
    @R.function
    def main(
        i: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32"), last: R.Tensor((), "int64")
    ) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            r: R.Tensor((n,), "float32") = R.add(x, R.take(x, last, axis=0, mode="fast"))
        else:
            j = R.subtract(i, R.const(1, "int32"))
            y = R.add(x, R.const(1, "float32"))
            below: R.Tensor((n,), "float32") = Wide.main(j, y, last)
            r: R.Tensor((n,), "float32") = R.multiply(below, R.const(1, "float32"))
        return r


@pytest.mark.parametrize("last", [3, 1 << 40])
def test_memory_of_activations_is_freed_at_errors_too(last):
    native = machines(Wide, "main")[0]["main"]
    x, unit = np.zeros(1 << 16, "float32"), 1024 if sys.platform == "linux" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    for _ in range(40):  # of 20 MiB each
        if last == 3:
            assert native(number(40), x, np.array(last)).numpy()[5] == 80
            continue
        with pytest.raises(IndexError):
            native(number(40), x, np.array(last))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    assert after - before < 200 << 20


@I.ir_module
class Deep:
    @R.function
    def main(i: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        stop = R.less(i, R.const(1, "int32"))
        if stop:
            r: R.Tensor((), "int32") = i
        else:
            below: R.Tensor((), "int32") = Deep.main(R.subtract(i, R.const(1, "int32")))
            r: R.Tensor((), "int32") = R.add(below, R.const(1, "int32"))
        return r


def in_thread(size, call):
    """The result of a call, or its error, in a thread with a stack of that size."""
    found = []

    def work():
        try:
            found.append(call())
        except weft.TVMError as error:
            found.append(error)

    before = threading.stack_size(size)
    thread = threading.Thread(target=work)
    thread.start()
    threading.stack_size(before)
    thread.join()
    return found[0]


def test_depth_is_limited_by_the_stack_of_the_thread():
    native = machines(Deep, "main")[0]["main"]
    assert native(number(10_000)).item() == 10_000
    with pytest.raises(weft.TVMError, match=r"main: calls are nested \d+ deep|nested more than"):
        native(number(1_000_000))
    message = str(in_thread(512 << 10, lambda: native(number(40_000))))
    assert "deep, and this thread's stack holds no more; a recursion needs an end" in message
    assert in_thread(64 << 20, lambda: native(number(49_000))).item() == 49_000
    assert native(number(3)).item() == 3


@I.ir_module
class Grows:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        y = R.concat((x, x), axis=0)
        z: R.Tensor(ndim=1, dtype="float32") = Grows.main(y)
        return z


def test_a_result_of_unknown_shape_runs_as_bytecode():
    main = relax.build(Grows, "llvm").program.functions["main"]
    assert main.why_not_native == (
        "main calls itself and returns a value whose shape is not declared"
    )
