"""Passes that change the parameters and results of private functions together with their calls."""

import numpy as np
import pytest

from weft.relax.transform import (
    ExpandTupleArguments,
    RemoveUnusedOutputs,
    RemoveUnusedParameters,
)
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_tuples_are_handed_over_field_by_field(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            cls = Before
            whole = ((x, y), y)
            a = cls.f(whole)
            return a

        @R.function(private=True)
        def f(
            t: R.Tuple(
                R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")),
                R.Tensor((2, 3), "float32"),
            ),
        ) -> R.Tensor((2, 3), "float32"):
            inner = t[0]
            a = inner[1]
            b = t[1]
            c = R.subtract(a, b)
            return c

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            cls = Expected
            a = cls.f(x, y, y)
            return a

        @R.function(private=True)
        def f(
            x: R.Tensor((2, 3), "float32"),
            y: R.Tensor((2, 3), "float32"),
            z: R.Tensor((2, 3), "float32"),
        ) -> R.Tensor((2, 3), "float32"):
            c = R.subtract(y, z)
            return c

    check(ExpandTupleArguments(), Before, Expected, X, X + 1)


def test_results_that_no_caller_takes_are_not_computed(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            s = cls.f(x)
            t = cls.f(s[2])
            return R.add(t[0], s[0])

        @R.function(private=True)
        def f(
            x: R.Tensor((2, 3), "float32"),
        ) -> R.Tuple(
            R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")
        ):
            a = R.exp(x)
            b = R.sin(x)
            c = R.cos(x)
            return (a, b, c)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            s = cls.f(x)
            a = s[0]
            b = s[1]
            t = cls.f(b)
            c = t[0]
            return R.add(c, a)

        @R.function(private=True)
        def f(
            x: R.Tensor((2, 3), "float32"),
        ) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            c = R.cos(x)
            return (a, c)

    check(RemoveUnusedOutputs(), Before, Expected, X)


def test_one_result_that_is_left_is_returned_alone(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            s = cls.f(x)
            again = s
            return again[1]

        @R.function(private=True)
        def f(
            x: R.Tensor((2, 3), "float32"),
        ) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            return (a, x)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            s = cls.f(x)
            return s

        @R.function(private=True)
        def f(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            return x

    check(RemoveUnusedOutputs(), Before, Expected, X)


def test_a_result_taken_as_a_whole_keeps_its_fields(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            s = cls.f(x)
            a = s[0]
            return (a, s)

        @R.function(private=True)
        def f(
            x: R.Tensor((2, 3), "float32"),
        ) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")):
            a = R.exp(x)
            return (a, x)

    check(RemoveUnusedOutputs(), Before, Before, X)


def test_unused_parameters_go_and_what_was_computed_for_them(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            a = R.exp(x)
            b = R.sin(x)
            c = cls.f(a, b)
            return c

        @R.function(private=True)
        def f(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            z = R.cos(y)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            b = R.sin(x)
            c = cls.f(b)
            return c

        @R.function(private=True)
        def f(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            z = R.cos(y)
            return z

    check(RemoveUnusedParameters(), Before, Expected, X)


def test_a_symbol_that_only_an_unused_parameter_defined_is_handed_over(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            a = cls.f(x)
            return a

        @R.function(private=True)
        def f(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", "n"), "float32"):
            n = T.int64()
            a = R.ones(R.shape([n, n]), "float32")
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            a = cls.f(R.prim_value(2))
            return a

        @R.function(private=True)
        def f(param_n: R.Prim(value="n")) -> R.Tensor(("n", "n"), "float32"):
            n = T.int64()
            a = R.ones(R.shape([n, n]), "float32")
            return a

    check(RemoveUnusedParameters(), Before, Expected, X)


def test_a_symbol_that_a_caller_cannot_tell_keeps_its_parameter(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor("float32", ndim=2)):
            cls = Before
            a = cls.f(x)
            return a

        @R.function(private=True)
        def f(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", "n"), "float32"):
            n = T.int64()
            a = R.ones(R.shape([n, n]), "float32")
            return a

    check(RemoveUnusedParameters(), Before, Before, X)


@pytest.mark.parametrize(
    "graph_pass", [ExpandTupleArguments(), RemoveUnusedOutputs(), RemoveUnusedParameters()]
)
def test_public_functions_keep_their_signature(check, graph_pass):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            pair = (x, x)
            s = cls.f(pair, x)
            return s[0]

        @R.function
        def f(
            t: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")),
            unused: R.Tensor((2, 3), "float32"),
        ) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((2, 3), "float32")):
            return t

    check(graph_pass, Before, Before, X)
