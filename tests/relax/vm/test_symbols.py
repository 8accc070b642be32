"""Symbolic shapes at run time: any order, expressions, closures, scalars; both ways agree."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def both(mod, *args):
    """The results of the two ways of running, as nested tuples of arrays."""
    ex = relax.build(mod)
    native, bytecode = [
        plain(relax.VirtualMachine(ex, weft.cpu(), exec_mode=mode)["main"](*args))
        for mode in ("native", "bytecode")
    ]
    same(native, bytecode)
    return native


def plain(value):
    if isinstance(value, tuple):
        return tuple([plain(item) for item in value])
    return value.numpy() if hasattr(value, "numpy") else value


def same(a, b):
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        np.testing.assert_array_equal(a, b)


def ones(*shape):
    return np.ones(shape, "float32")


@I.ir_module
class LargerFirst:
    @R.function
    def main(x: R.Tensor(("n + 1",), "float32"), y: R.Tensor(("n",), "float32")):
        n = T.int64()
        z = R.add(x, R.ones((n + 1,), "float32"))
        return (z, y)


def test_an_expression_may_stand_before_the_symbol_that_it_uses():
    z, y = both(LargerFirst, ones(4), ones(3))
    assert z.shape == (4,)
    assert y.shape == (3,)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_an_expression_that_does_not_fit_is_an_error(mode):
    vm = relax.VirtualMachine(relax.build(LargerFirst), weft.cpu(), exec_mode=mode)
    with pytest.raises(weft.TVMError, match=r"argument 0 \(x\): expected shape .*got \(4,\)"):
        vm["main"](ones(4), ones(4))


@I.ir_module
class TupleParameter:
    @R.function
    def main(t: R.Tuple(R.Tensor(("2 * n",), "float32"), R.Tensor(("n",), "float32"))):
        n = T.int64()
        a = t[1]
        b = R.add(a, R.ones((n,), "float32"))
        return b


def test_fields_of_a_tuple_bind_in_any_order():
    np.testing.assert_array_equal(both(TupleParameter, (ones(4), ones(2))), [2, 2])
    with pytest.raises(weft.TVMError, match=r"\(t\)\[0\]: expected shape"):
        both(TupleParameter, (ones(3), ones(2)))


@I.ir_module
class Slices:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")):
        n = T.int64()
        m = T.int64()
        half = R.strided_slice(x, axes=[0], begin=[0], end=[n // 2])
        turned = R.permute_dims(half)
        total = R.sum(turned, axis=1)
        return (half, total, R.shape([n // 2, m * 3 + 1]))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_extents_with_a_choice_in_them(rows):
    half, total, shape = both(Slices, ones(rows, 2))
    assert half.shape == (rows // 2, 2)
    np.testing.assert_array_equal(total, [rows // 2] * 2)
    assert shape == (rows // 2, 7)


@I.ir_module
class Capture:
    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()

        @R.function
        def inner(a: R.Tensor((2,), "float32")) -> R.Tensor((n,), "float32"):
            made = R.ones((n,), "float32")
            return made

        r = inner(R.zeros((2,), "float32"))
        return r


def test_a_closure_keeps_the_symbols_around_it():
    np.testing.assert_array_equal(both(Capture, ones(5)), ones(5))


@I.ir_module
class Loop:
    @R.function
    def main(count: R.Tensor((), "int32"), x: R.Tensor(("n",), "float32")):
        n = T.int64()

        @R.function
        def loop(k: R.Tensor((), "int32"), a: R.Tensor((n,), "float32")) -> R.Tensor(
            (n,), "float32"
        ):
            done = R.less(k, R.const(1, "int32"))
            if done:
                r = a
            else:
                step = R.ones((n,), "float32")
                b = R.add(a, step)
                less = R.subtract(k, R.const(1, "int32"))
                r = loop(less, b)
            return r

        q = loop(count, x)
        return q


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_local_function_calls_itself(count):
    result = both(Loop, np.array(count, "int32"), ones(3))
    np.testing.assert_array_equal(result, ones(3) * (count + 1))


def test_a_local_function_that_calls_itself_prints_and_parses_back():
    weft.ir.assert_structural_equal(weft.script.from_source(Loop.script()), Loop)


@I.ir_module
class ShapesAndScalars:
    @R.function
    def main(s: R.Shape(["a", "b"]), k: R.Prim(value="k"), x: R.Tensor(dtype="float32")):
        a = T.int64()
        b = T.int64()
        k = T.int64()
        y = R.match_cast(x, R.Tensor((a * 2, b + k), "float32"))
        z = R.add(y, R.ones((a * 2, b + k), "float32"))
        return (z, s)


def test_shapes_and_scalars_define_symbols_that_match_cast_checks():
    z, s = both(ShapesAndScalars, (1, 2), 1, ones(2, 3))
    np.testing.assert_array_equal(z, ones(2, 3) * 2)
    assert s == (1, 2)
    with pytest.raises(weft.TVMError, match=r"match_cast y: expected shape .*got \(2, 3\)"):
        both(ShapesAndScalars, (1, 2), 2, ones(2, 3))


TWO = np.ones(2, "float32")
FOUR = np.ones(4, "float32")


@I.ir_module
class Divisions:
    """Extents of ``n // k`` in every place that is computed at the call."""

    @R.function
    def parameter(
        x: R.Tensor(("n",), "float32"), k: R.Prim(value="k"), y: R.Tensor(("n // k",), "float32")
    ):
        return y

    @R.function
    def output(x: R.Tensor(("n",), "float32"), k: R.Prim(value="k")):
        n, k = T.int64(), T.int64()
        with R.dataflow():
            y = R.zeros(R.shape([n // k]), "float32")
            R.output(y)
        return y

    @R.function
    def cast(x: R.Tensor(("n",), "float32"), k: R.Prim(value="k"), y: R.Tensor(("m",), "float32")):
        n, k = T.int64(), T.int64()
        with R.dataflow():
            z = R.match_cast(y, R.Tensor((n // k,), "float32"))
            w = R.add(z, z)
            R.output(w)
        return w

    @R.function
    def result(x: R.Tensor(("n",), "float32"), k: R.Prim(value="k")):
        n, k = T.int64(), T.int64()
        return R.shape([n // k])


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("name", ["parameter", "output", "cast", "result"])
def test_an_extent_that_divides_by_zero_is_an_error_of_the_caller(name, mode):
    machine = weft.relax.VirtualMachine(weft.relax.build(Divisions), weft.cpu(), exec_mode=mode)
    more = (TWO,) if name in ("parameter", "cast") else ()
    machine[name](FOUR, 2, *more)
    with pytest.raises(weft.TVMError, match="divides by 0") as error:
        machine[name](FOUR, 0, *more)
    assert "fault of weft" not in str(error.value)
