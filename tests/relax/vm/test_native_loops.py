"""Functions that end with a call of themselves are loops: natively, as bytecode, interpreted."""

import os
import signal
import threading

import numpy as np
import pytest

import weft
from tests.lib.graph_ways import errors, everywhere, machines
from weft import relax
from weft.runtime.vm.interrupts import FIRST, between_steps
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

MANY = 1_000_000


def number(value, dtype="int32"):
    return np.array(value, dtype)


@I.ir_module
class Swaps:
    @R.function
    def main(
        i: R.Tensor((), "int32"),
        a: R.Tensor(("n",), "int64"),
        b: R.Tensor(("n",), "int64"),
        c: R.Tensor(("n",), "int64"),
    ) -> R.Tuple(R.Tensor(("n",), "int64"), R.Tensor(("n",), "int64"), R.Tensor(("n",), "int64")):
        n = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            r: R.Tuple(
                R.Tensor((n,), "int64"), R.Tensor((n,), "int64"), R.Tensor((n,), "int64")
            ) = (a, b, c)
        else:
            j = R.subtract(i, R.const(1, "int32"))
            r: R.Tuple(
                R.Tensor((n,), "int64"), R.Tensor((n,), "int64"), R.Tensor((n,), "int64")
            ) = Swaps.main(j, b, R.add(a, b), c)
        return r


def test_values_change_places():
    def fibonacci(steps):
        x, y, kept = everywhere(
            Swaps, "main", number(steps), *[number([v, v], "int64") for v in (0, 1, 7)]
        )
        assert kept.tolist() == [7, 7]
        return x.tolist(), y.tolist()

    assert fibonacci(0) == ([0, 0], [1, 1])
    assert fibonacci(1) == ([1, 1], [1, 1])
    assert fibonacci(12) == ([144, 144], [233, 233])


@I.ir_module
class Nested:
    @R.function
    def inner(
        j: R.Tensor((), "int64"), s: R.Tensor((2,), "int64"), w: R.Tensor((2,), "int64")
    ) -> R.Tensor((2,), "int64"):
        more = R.greater(j, R.const(0, "int64"))
        if more:
            t = R.add(s, w)
            k = R.subtract(j, R.const(1, "int64"))
            r: R.Tensor((2,), "int64") = Nested.inner(k, t, w)
        else:
            r: R.Tensor((2,), "int64") = s
        return r

    @R.function
    def main(i: R.Tensor((), "int64"), s: R.Tensor((2,), "int64")) -> R.Tensor((2,), "int64"):
        w = R.add(s, R.const(1, "int64"))
        more = R.greater(i, R.const(0, "int64"))
        if more:
            twice = R.add(i, i)
            kept = R.multiply(s, R.const(2, "int64"))
            inside: R.Tensor((2,), "int64") = Nested.inner(twice, s, w)
            again: R.Tensor((2,), "int64") = Nested.inner(i, kept, inside)
            sum = R.subtract(R.add(again, R.add(kept, w)), inside)
            low = R.floor_mod(sum, R.const(1009, "int64"))
            r: R.Tensor((2,), "int64") = Nested.main(R.subtract(i, R.const(1, "int64")), low)
        else:
            r: R.Tensor((2,), "int64") = R.add(s, w)
        return r


def nested(i, s):
    while i:
        w, kept = s + 1, s * 2
        inside = s + 2 * i * w
        s = (kept + i * inside + kept + w - inside) % 1009
        i -= 1
    return s + s + 1


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_loops_in_a_loop_keep_what_is_used_after_them(steps):
    s = number([3, 5], "int64")
    result = everywhere(Nested, "main", number(steps, "int64"), s)
    np.testing.assert_array_equal(result, nested(steps, s))


@I.ir_module
class Kinds:
    @R.function
    def main(
        p: R.Tuple(R.Tensor((), "int32"), R.Tuple(R.Tensor(ndim=1, dtype="float32"))),
        k: R.Prim("int64"),
        s: R.Shape(ndim=2),
        m: R.Prim(value="m"),
        t: R.Shape(("m", 1)),
    ) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "int64"), R.Prim(value="m")):
        m = T.int64()
        i = p[0]
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            numbers = R.shape_to_tensor(s)
            x: R.Tensor(ndim=1, dtype="float32") = p[1][0]
            r: R.Tuple(
                R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "int64"), R.Prim(value=m)
            ) = (x, numbers, R.prim_value(m))
        else:
            n = T.int64()
            y = R.match_cast(p[1][0], R.Tensor((n,), "float32"))
            z = R.add(y, R.const(1, "float32"))
            q = (R.subtract(i, R.const(1, "int32")), (z,))
            r: R.Tuple(
                R.Tensor(ndim=1, dtype="float32"), R.Tensor((2,), "int64"), R.Prim(value=m)
            ) = Kinds.main(q, k, R.shape([m, n]), R.prim_value(m), R.shape([m, 1]))
        return r


def test_states_of_every_kind():
    zeros = np.zeros(3, "float32")
    for steps, shape in ((0, [5, 6]), (4, [9, 3])):
        x, numbers, m = everywhere(Kinds, "main", (number(steps), (zeros,)), 1, (5, 6), 9, (9, 1))
        assert (x.tolist(), numbers.tolist(), m) == ([steps] * 3, shape, 9)


@I.ir_module
class Count:
    @R.function
    def main(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        stop = R.equal(i, R.const(0, "int64"))
        if stop:
            r: R.Tensor((), "int64") = i
        else:
            j = R.subtract(i, R.const(1, "int64"))
            r: R.Tensor((), "int64") = Count.main(j)
        return r

    @R.function
    def tree(i: R.Tensor((), "int64"), s: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        stop = R.less_equal(i, R.const(0, "int64"))
        if stop:
            r: R.Tensor((), "int64") = R.add(s, R.const(1, "int64"))
        else:
            left: R.Tensor((), "int64") = Count.tree(R.subtract(i, R.const(2, "int64")), s)
            r: R.Tensor((), "int64") = Count.tree(R.subtract(i, R.const(1, "int64")), left)
        return r


def test_a_million_steps_also_on_a_small_stack():
    native = machines(Count, "main")[0]["main"]
    results = []

    def work():
        results.append(native(number(MANY, "int64")).item())

    before = threading.stack_size(256 << 10)
    thread = threading.Thread(target=work)
    thread.start()
    threading.stack_size(before)
    thread.join()
    assert results == [0]


def test_one_of_two_calls_is_the_last():
    def leaves(i):
        return 1 if i <= 0 else leaves(i - 2) + leaves(i - 1)

    assert everywhere(Count, "tree", number(9, "int64"), number(0, "int64")) == leaves(9)


@I.ir_module
class Grows:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), i: R.Tensor((), "int64")) -> R.Tensor(
        ndim=1, dtype="float32"
    ):
        more = R.greater(i, R.const(0, "int64"))
        if more:
            y = R.concat((x, R.full((2,), R.const(1, "float32"), "float32")), axis=0)
            j = R.subtract(i, R.const(1, "int64"))
            z: R.Tensor(ndim=1, dtype="float32") = Grows.main(y, j)
        else:
            z: R.Tensor(ndim=1, dtype="float32") = x
        return z


def test_a_state_that_grows_runs_as_bytecode():
    executable = relax.build(Grows, "llvm")
    main = executable.program.functions["main"]
    assert main.why_not_native == "a loop changes n, an extent of x"
    grown = relax.VirtualMachine(executable)["main"](np.zeros(1, "float32"), number(50, "int64"))
    assert grown.numpy().tolist() == [0] + [1] * 100


@I.ir_module
class Raises:
    @R.function(pure=False)
    def main(
        i: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32"), s: R.Shape(ndim=1)
    ) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        stop = R.equal(i, R.const(0, "int32"))
        if stop:
            _s = R.match_cast(s, R.Shape([n + 1]))
            r: R.Tensor((n,), "float32") = x
        else:
            y = R.call_dps_packed("test.loops.step", (i, x), R.Tensor((n,), "float32"))
            r: R.Tensor((n,), "float32") = Raises.main(R.subtract(i, R.const(1, "int32")), y, s)
        return r


@pytest.fixture
def step():
    """``test.loops.step``: the numbers that it was called with."""
    numbers = []

    def called(i, x, out):
        numbers.append(i.item())
        if i.item() == 13:
            raise ValueError("unlucky")
        out.copyfrom(x.numpy() + i.item())

    weft.register_func("test.loops.step", called, override=True)
    return numbers


def test_python_is_called_in_each_step_and_may_raise(step):
    zeros = np.zeros(2, "float32")
    for machine in machines(Raises, "main"):
        step.clear()
        assert machine["main"](number(3), zeros, (3,)).numpy().tolist() == [6, 6]
        assert step == [3, 2, 1]
        with pytest.raises(ValueError, match="unlucky"):
            machine["main"](number(20), zeros, (3,))
        assert not zeros.any()


def test_a_cast_that_fails_in_the_last_step(step):
    message = errors(Raises, "main", number(3), np.zeros(2, "float32"), (7,))
    assert message == "main: match_cast _s: expected shape ((n + 1),), n=2, got (7,)"


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_control_c_leaves_a_loop(mode):
    machine = relax.VirtualMachine(relax.build(Count, "llvm"), exec_mode=mode)
    handler = signal.getsignal(signal.SIGINT)
    for _ in range(3):
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            machine["main"](number(-1, "int64"))
        assert signal.getsignal(signal.SIGINT) is handler
    assert machine["main"](number(3, "int64")).item() == 0


def test_a_clock_is_set_by_the_time_that_steps_take():
    clock = weft.nd.array(np.array([0, FIRST, 0]))
    between_steps(clock)
    following, steps, last = clock.numpy().tolist()
    assert following == steps == FIRST
    clock.copyfrom(np.array([0, FIRST, last]))
    between_steps(clock)
    assert FIRST < clock.numpy()[0] <= 16 * FIRST
    clock.copyfrom(np.array([0, FIRST, last - 10**10]))
    between_steps(clock)
    assert clock.numpy()[0] == 1
