"""LambdaLift: local functions, what they capture, and the names they get."""

import numpy as np

from weft import relax
from weft.relax.analysis import well_formed
from weft.relax.reference import run
from weft.relax.transform import LambdaLift
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

X = np.arange(6, dtype="float32").reshape(2, 3)


def names(mod):
    return sorted(gvar.name_hint for gvar in mod.get_global_vars())


def native(mod, *arguments):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"))
    return machine["main"](*arguments).numpy()


def test_a_function_that_captures_nothing_is_called_by_name(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            @R.function
            def inner(y: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
                z = R.exp(y)
                return z

            a: R.Tensor((2, 3), "float32") = inner(x)
            return a

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            a: R.Tensor((2, 3), "float32") = cls.main_inner(x)
            return a

        @R.function(private=True)
        def main_inner(y: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
            z = R.exp(y)
            return z

    made = check(LambdaLift(), Before, Expected, X)
    check(LambdaLift(), made, made)


def test_captured_values_are_parameters_at_the_end(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                s = R.exp(x)

                @R.function
                def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    a = R.add(z, s)
                    return a

                b: R.Tensor((2, 3), "float32") = inner(y)
                R.output(b)
            return b

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            cls = Expected
            with R.dataflow():
                s = R.exp(x)
                inner = R.make_closure(cls.main_inner, (s,))
                b = R.invoke_pure_closure(inner, (y,), sinfo_args=R.Tensor((2, 3), "float32"))
                R.output(b)
            return b

        @R.function(private=True)
        def main_inner(z: R.Tensor((2, 3), "float32"), s: R.Tensor((2, 3), "float32")) -> R.Tensor(
            (2, 3), "float32"
        ):
            a = R.add(z, s)
            return a

    made = check(LambdaLift(), Before, Expected, X, X + 1)
    np.testing.assert_allclose(native(made, X, X + 1), np.exp(X) + X + 1, rtol=1e-6)


def test_a_symbol_of_the_function_around_is_captured_as_a_shape():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32")):
            n = T.int64()

            @R.function
            def inner(y: R.Tensor((1, 3), "float32")) -> R.Tensor((n, 3), "float32"):
                a = R.broadcast_to(y, R.shape([n, 3]))
                return a

            one = R.ones(R.shape([1, 3]), "float32")
            b: R.Tensor((n, 3), "float32") = inner(one)
            c = R.add(b, x)
            return c

    made = LambdaLift()(Before)
    assert well_formed(made)
    assert names(made) == ["main", "main_inner"]
    assert "R.make_closure(cls.main_inner, (R.shape([n]),))" in made.script()
    np.testing.assert_array_equal(run(made, "main", X), X + 1)
    np.testing.assert_array_equal(native(made, X), X + 1)


def test_recursion_passes_the_captured_values_on():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), n: R.Tensor((), "int32")):
            @R.function
            def loop(i: R.Tensor((), "int32"), s: R.Tensor((2, 3), "float32")) -> R.Tensor(
                (2, 3), "float32"
            ):
                c = R.less(i, n)
                if c:
                    j = R.add(i, R.const(1, "int32"))
                    t = R.add(s, x)
                    r: R.Tensor((2, 3), "float32") = loop(j, t)
                else:
                    r = s
                return r

            zero = R.zeros(R.shape([2, 3]), "float32")
            y: R.Tensor((2, 3), "float32") = loop(R.const(0, "int32"), zero)
            return y

    made = LambdaLift()(Before)
    assert well_formed(made)
    count = np.array(3, "int32")
    np.testing.assert_array_equal(run(made, "main", X, count), 3 * X)
    np.testing.assert_array_equal(native(made, X, count), 3 * X)


def test_an_inner_function_may_call_the_closure_around_it():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
            @R.function
            def outer(go: R.Tensor((), "bool"), s: R.Tensor((2, 3), "float32")) -> R.Tensor(
                (2, 3), "float32"
            ):
                @R.function
                def inner(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    stop = R.logical_not(go)
                    a: R.Tensor((2, 3), "float32") = outer(stop, R.add(z, x))
                    return a

                if go:
                    r: R.Tensor((2, 3), "float32") = inner(s)
                else:
                    r = s
                return r

            y: R.Tensor((2, 3), "float32") = outer(c, x)
            return y

    made = LambdaLift()(Before)
    assert well_formed(made)
    assert names(made) == ["main", "main_inner", "main_outer"]
    go = np.array(True)
    np.testing.assert_array_equal(run(made, "main", X, go), 2 * X)
    np.testing.assert_array_equal(native(made, X, go), 2 * X)


def test_a_returned_function_is_a_closure():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            @R.function
            def adder(
                s: R.Tensor((2, 3), "float32"),
            ) -> R.Callable((R.Tensor((2, 3), "float32"),), R.Tensor((2, 3), "float32")):
                @R.function
                def add(t: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    a = R.add(s, t)
                    return a

                return add

            f = adder(x)
            g = f
            b = g(y)
            return b

    made = LambdaLift()(Before)
    assert well_formed(made)
    assert names(made) == ["main", "main_add", "main_adder"]
    np.testing.assert_array_equal(run(made, "main", X, X + 1), 2 * X + 1)


def test_names_that_are_taken_get_the_whole_path_or_a_number():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            @R.function
            def a(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                @R.function
                def b(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                    r = R.exp(z)
                    return r

                s: R.Tensor((2, 3), "float32") = b(y)
                return s

            @R.function
            def b(y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
                r = R.sin(y)
                return r

            t: R.Tensor((2, 3), "float32") = a(x)
            u: R.Tensor((2, 3), "float32") = b(t)
            return u

        @R.function
        def main_a():
            return R.tuple()

    made = LambdaLift()(Before)
    assert well_formed(made)
    assert names(made) == ["main", "main_a", "main_a_0", "main_a_b", "main_b_0"]
    np.testing.assert_array_equal(run(made, "main", X), run(Before, "main", X))
