"""InlinePrivateFunctions: bodies for calls, and the functions that stay."""

import numpy as np

from weft.relax.transform import InlinePrivateFunctions
from weft.script import ir as I
from weft.script import relax as R

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_private_functions_that_call_each_other_are_inlined(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            a = cls.twice(x)
            b = cls.public(a)
            return b

        @R.function(private=True)
        def twice(y: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
            cls = Before
            a: R.Tensor(("n", 3), "float32") = cls.once(y)
            b: R.Tensor(("n", 3), "float32") = cls.once(a)
            return b

        @R.function(private=True)
        def once(y: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
            a = R.exp(y)
            return a

        @R.function
        def public(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a = R.sin(y)
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            a = R.exp(x)
            b = R.exp(a)
            c: R.Tensor((2, 3), "float32") = cls.public(b)
            return c

        @R.function
        def public(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a = R.sin(y)
            return a

    check(InlinePrivateFunctions(), Before, Expected, X)


def test_recursive_functions_and_those_in_closures_stay(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Before
            closure = R.make_closure(cls.captured, (x,))
            a = R.invoke_pure_closure(closure, (x,), sinfo_args=R.Tensor((2, 3), "float32"))
            b = cls.endless(a)
            return b

        @R.function(private=True)
        def captured(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            a = R.add(x, y)
            return a

        @R.function(private=True)
        def endless(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            cls = Before
            a: R.Tensor((2, 3), "float32") = cls.endless(x)
            return a

    check(InlinePrivateFunctions(), Before, Before)


def test_functions_that_branch_stay_where_a_dataflow_block_calls_them(check):
    @I.ir_module
    class Before:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")):
            cls = Before
            with R.dataflow():
                a = cls.outer(c, x)
                R.output(a)
            return a

        @R.function(private=True)
        def outer(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            cls = Before
            a: R.Tensor((2, 3), "float32") = cls.one_of(c, x)
            b = R.sin(a)
            return b

        @R.function(private=True)
        def one_of(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            if c:
                a = R.exp(x)
            else:
                a = R.cos(x)
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")):
            cls = Expected
            with R.dataflow():
                a: R.Tensor((2, 3), "float32") = cls.one_of(c, x)
                b = R.sin(a)
                R.output(b)
            return b

        @R.function(private=True)
        def one_of(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            if c:
                a = R.exp(x)
            else:
                a = R.cos(x)
            return a

    check(InlinePrivateFunctions(), Before, Expected, np.array(True), X)


def test_functions_that_branch_are_inlined_elsewhere(check):
    @I.ir_module
    class Before:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")):
            cls = Before
            a = cls.one_of(c, x)
            return a

        @R.function(private=True)
        def one_of(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            if c:
                a = R.exp(x)
            else:
                a = R.cos(x)
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")):
            if c:
                a = R.exp(x)
            else:
                a = R.cos(x)
            return a

    check(InlinePrivateFunctions(), Before, Expected, np.array(False), X)
