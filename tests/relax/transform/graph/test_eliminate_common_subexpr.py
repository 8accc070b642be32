"""EliminateCommonSubexpr: equal values once, in the scopes where the first one is visible."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np

from weft.relax.reference import run
from weft.relax.transform import EliminateCommonSubexpr
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_a_value_is_computed_once_through_its_operands(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x)
                c = R.add(a, x)
                d = R.add(b, x)
                e = R.multiply(c, d)
                R.output(e)
            return e

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = a
                c = R.add(a, x)
                d = c
                e = R.multiply(c, c)
                R.output(e)
            return e

    check(EliminateCommonSubexpr(), Before, Expected, X)
    check(EliminateCommonSubexpr(), Expected, Expected)


def test_what_a_call_in_place_writes_is_not_shared():
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def negated(A: T.Buffer((T.int64(2), T.int64(3)), "float32")):
            for i, j in T.grid(T.int64(2), T.int64(3)):
                with T.block("negated"):
                    u, v = T.axis.remap("SS", [i, j])
                    A[u, v] = -A[u, v]

        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x)
                v = R.reshape(b, (2, 3))
                c = R.call_tir_inplace(
                    cls.negated, (v,), out_sinfo=R.Tensor((2, 3), "float32"), inplace_indices=[0]
                )
                d = R.subtract(a, c)
                R.output(d)
            return d

    assert EliminateCommonSubexpr()(Before) is Before
    np.testing.assert_allclose(run(Before, "main", X), 2 * np.exp(X), rtol=1e-6)


def test_attributes_and_order_of_operands_make_values_different(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            a = R.sum(x, axis=0)
            b = R.sum(x, axis=0, keepdims=True)
            c = R.subtract(a, b)
            d = R.subtract(b, a)
            e = R.add(c, d)
            return e

    check(EliminateCommonSubexpr(), Before, Before, X)


def test_tuples_and_fields_are_left_alone_where_only_calls_are_asked_for(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            s = (x, x)
            t = (x, x)
            a = s[0]
            b = s[0]
            c = R.exp(a)
            return (b, c, t)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            s = (x, x)
            t = s
            a = s[0]
            b = a
            c = R.exp(a)
            return (a, c, s)

    check(EliminateCommonSubexpr(), Before, Expected, X)
    check(EliminateCommonSubexpr(call_only=True), Before, Before)


def test_an_output_of_a_block_serves_later_blocks_and_its_dataflow_twin_does_not(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x)
                c = R.sin(b)
                R.output(b, c)
            between = R.cos(x)
            with R.dataflow():
                d = R.exp(x)
                e = R.add(d, R.sin(x))
                R.output(e)
            f = R.add(R.exp(x), b)
            return (b, c, e, f)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = a
                c = R.sin(a)
                R.output(b, c)
            between = R.cos(x)
            with R.dataflow():
                d = b
                e = R.add(b, R.sin(x))
                R.output(e)
            g = b
            f = R.add(b, b)
            return (b, c, e, f)

    check(EliminateCommonSubexpr(), Before, Expected, X)


def test_branches_see_what_was_before_and_not_each_other(check):
    @I.ir_module
    class Before:
        @R.function
        def main(c: R.Prim("bool"), x: R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            if c:
                b = R.exp(x)
                d = R.sin(b)
            else:
                b = R.sin(a)
                d = R.add(b, b)
            e = R.sin(a)
            return R.add(d, e)

    @I.ir_module
    class Expected:
        @R.function
        def main(c: R.Prim("bool"), x: R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            if c:
                b = a
                d = R.sin(a)
            else:
                b = R.sin(a)
                d = R.add(b, b)
            e = R.sin(a)
            return R.add(d, e)

    made = check(EliminateCommonSubexpr(), Before, Expected)
    for flag in (True, False):
        np.testing.assert_array_equal(run(made, "main", flag, X), run(Before, "main", flag, X))


def test_effects_and_allocations_are_done_as_often_as_before(check):
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(x: R.Tensor((2, 3), "float32")):
            a = R.print(x, format="{}")
            b = R.print(x, format="{}")
            c = R.builtin.alloc_tensor(R.shape([4]), R.dtype("int32"), R.prim_value(0))
            d = R.builtin.alloc_tensor(R.shape([4]), R.dtype("int32"), R.prim_value(0))
            return (c, d)

    check(EliminateCommonSubexpr(), Before, Before)


def test_the_same_cast_is_done_once(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            n = T.int64()
            a = R.match_cast(x, R.Tensor((2, n), "float32"))
            b = R.match_cast(x, R.Tensor((2, n), "float32"))
            return R.add(a, b)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            n = T.int64()
            a = R.match_cast(x, R.Tensor((2, n), "float32"))
            b: R.Tensor((2, n), "float32") = a
            return R.add(a, a)

    check(EliminateCommonSubexpr(), Before, Expected, X)
