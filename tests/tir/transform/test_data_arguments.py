"""Integer arguments that are data wrap in native code as they do in the interpreter."""

import itertools

import numpy as np
import pytest

import weft
from weft.arith.data import has_data
from weft.script import tir as T
from weft.tir import op
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Select
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, seq
from weft.tir.transform import Simplify
from weft.tir.transform.data_arguments import with_data_arguments

ENDS = [-(2**31), -(2**31) + 1, -1, 0, 1, 3, 2**30, 2**31 - 1]


@T.prim_func
def comparisons(n: T.int32, m: T.int32, A: T.Buffer((2,), "int32"), B: T.Buffer((14,), "int64")):
    B[0] = T.Cast("int64", n + 1 > n)
    B[1] = T.Cast("int64", A[0] + 1 > A[0])
    B[2] = T.Cast("int64", n + 1 - n)
    B[3] = T.Cast("int64", T.Cast("int64", n + 1) > T.Cast("int64", n))
    B[4] = T.Cast("int64", A[0] + 1)
    B[5] = T.Cast("int64", n + m)
    B[6] = T.Cast("int64", T.max(n, n + 1))
    B[7] = T.Cast("int64", (n * 2) // 2)
    B[8] = T.Cast("int64", n * 2 < n * 3)
    B[9] = T.Cast("int64", n - m < 0)
    B[10] = T.Cast("int64", T.min(n - 1, m))
    B[11] = T.Cast("int64", (n + m) * 4 % 4)
    B[12] = T.Cast("int64", T.Select(n + 3 <= n, 1, 2))
    B[13] = T.Cast("int64", A[0] - A[1] <= 0)


def both(func, *args, size):
    """What the interpreter and what native code store."""
    exact, native = np.zeros(size, "int64"), weft.nd.array(np.zeros(size, "int64"))
    run(func, *args, exact)
    given = [weft.nd.array(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
    built = weft.build(func)
    built(*given, native)
    return exact, native.numpy()


@pytest.mark.parametrize(("n", "m"), list(itertools.product(ENDS[::2], ENDS[1::2])))
def test_arithmetic_wraps_as_in_the_interpreter(n, m):
    data = np.array([m, n], "int32")
    exact, native = both(comparisons, n, m, data, size=14)
    np.testing.assert_array_equal(native, exact)


def random_expression(rng, leaves, depth):
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.3:
            return op.const(int(rng.choice([-3, -1, 1, 2, 4, 2**30, 2**31 - 1])), "int32")
        return leaves[rng.integers(len(leaves))]
    a, b = (random_expression(rng, leaves, depth - 1) for _ in range(2))
    kind = rng.integers(8)
    if kind < 3:
        return (op.add, op.subtract, op.multiply)[kind](a, b)
    if kind < 5:
        return (op.minimum, op.maximum)[kind - 3](a, b)
    if kind == 5:
        return op.floordiv(a, op.const(int(rng.choice([2, 3, 4])), "int32"))
    if kind == 6:
        return op.floormod(a, op.const(int(rng.choice([2, 3, 4])), "int32"))
    test = (op.less, op.less_equal, op.equal)[rng.integers(3)](a, b)
    return Select(test, a, b)


def test_random_expressions_of_arguments_agree_with_the_interpreter():
    """200 expressions of two arguments and an element, at the ends of int32."""
    rng = np.random.default_rng(11)

    @T.prim_func
    def empty(n: T.int32, m: T.int32, A: T.Buffer((1,), "int32"), B: T.Buffer((200,), "int64")):
        B[0] = T.Cast("int64", A[0])

    n, m = empty.params[:2]
    source, result = (empty.buffer_map[param] for param in empty.params[2:])

    leaves = [n, m, BufferLoad(source, [0])]
    stores = []
    for place in range(200):
        value = random_expression(rng, leaves, 4)
        stores.append(BufferStore(result, op.cast("int64", value), [place]))
    func = empty.with_(body=seq(*stores))
    built = weft.build(func)
    for _ in range(12):
        first, second, element = (int(rng.choice(ENDS)) for _ in range(3))
        exact, native = np.zeros(200, "int64"), weft.nd.array(np.zeros(200, "int64"))
        run(func, first, second, np.array([element], "int32"), exact)
        built(first, second, weft.nd.array(np.array([element], "int32")), native)
        np.testing.assert_array_equal(native.numpy(), exact)


def test_an_argument_that_says_a_place_or_a_size_is_exact():
    @T.prim_func
    def fill(n: T.int32, k: T.int32, x: T.int32, B: T.Buffer((8,), "int32")):
        for i in range(n):
            B[i + k] = x

    made = with_data_arguments(fill)
    assert [has_data(param) for param in made.params[:3]] == [False, False, True]
    assert with_data_arguments(made) is made
    assert Simplify()(weft.IRModule({"main": fill}))["main"] is not None
