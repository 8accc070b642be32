"""CanonicalizeBindings: renamings, known extents, and where variables must not leave a block."""
# ruff: noqa: F841 - scripts are no plain Python

import numpy as np
import pytest

import weft
from weft.relax.analysis import well_formed
from weft.relax.reference import run
from weft.relax.transform import CanonicalizeBindings
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRValueError


def test_a_field_of_a_tuple_stays_where_its_variable_is_not_visible():
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")):
            with R.dataflow():
                lv = R.add(x, y)
                gv = (lv, y)
                R.output(gv)
            n = R.print(format="between")
            with R.dataflow():
                a = gv[0]
                b = gv[1]
                c = R.add(a, b)
                R.output(c)
            return c

    made = CanonicalizeBindings()(Before)
    assert well_formed(made)
    text = made.script()
    assert "gv[0]" in text  # of a dataflow variable
    assert "gv[1]" not in text  # of a parameter


def test_a_tuple_of_all_fields_stays_where_the_tuple_is_not_visible():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                t = R.split(x, 2)
                a = t[0]
                b = t[1]
                R.output(a, b)
            w = (a, b)
            return w

    assert well_formed(CanonicalizeBindings()(Before))


def test_fields_within_one_block_are_followed():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(x)
                pair = (lv, x)
                first = pair[0]
                out = R.add(first, first)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(x)
                pair = (lv, x)
                out = R.add(lv, lv)
                R.output(out)
            return out

    weft.ir.assert_structural_equal(CanonicalizeBindings()(Before), Expected)


X = np.arange(6, dtype="float32").reshape(2, 3)


def test_an_output_that_only_renames_takes_the_place(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = a
                first = b
                second = a
                R.output(first, second)
            return (first, second)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                first = R.exp(x)
                R.output(first)
            return (first, first)

    made = check(CanonicalizeBindings(), Before, Expected, X)
    assert CanonicalizeBindings()(made) is made


def test_outputs_that_nothing_outside_uses_stay_in_their_block(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(a, b)
            return b

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.add(a, a)
                R.output(b)
            return b

    check(CanonicalizeBindings(), Before, Expected, X)


def test_constants_stand_where_they_are_used(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            one = R.const(1, "float32")
            pair = (one, x)
            same = pair[0]
            y = R.add(x, same)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            one = R.const(1, "float32")
            pair = (R.const(1, "float32"), x)
            y = R.add(x, R.const(1, "float32"))
            return y

    check(CanonicalizeBindings(), Before, Expected, X)


def test_a_cast_that_names_known_extents_goes(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, "k"), "float32")):
            k, m, n = T.int64(), T.int64(), T.int64()
            y = R.match_cast(x, R.Tensor((m, n), "float32"))
            z: R.Tensor((m * 2, n), "float32") = R.concat((y, y), axis=0)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, "k"), "float32")):
            z = R.concat((x, x), axis=0)
            return z

    check(CanonicalizeBindings(), Before, Expected, X)


def test_a_cast_to_the_symbol_of_a_parameter_is_a_check(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("m",), "float32"), y: R.Tensor(("n",), "float32")):
            n = T.int64()
            z = R.match_cast(x, R.Tensor((n,), "float32"))
            return R.add(z, y)

    check(CanonicalizeBindings(), Before, Before, X[0], X[1])


def test_branches_may_tell_different_extents(check):
    @I.ir_module
    class Before:
        @R.function
        def main(c: R.Prim("bool"), x: R.Tensor((2, 3), "float32")):
            if c:
                n = T.int64()
                y = R.match_cast(x, R.Tensor((2, n), "float32"))
                z: R.Tensor((2, 3), "float32") = R.exp(y)
            else:
                z = R.negative(x)
            return z

    made = CanonicalizeBindings()(Before)
    assert well_formed(made)
    assert "match_cast" not in made.script()
    for flag in (True, False):
        np.testing.assert_array_equal(run(made, "main", flag, X), run(Before, "main", flag, X))


def test_casts_that_disagree_are_an_error():
    @I.ir_module
    class Before:
        @R.function(pure=False)
        def main(x: R.Tensor((2,), "float32"), y: R.Tensor((3,), "float32")):
            n = T.int64()
            a = R.match_cast(x, R.Tensor((n,), "float32"))
            b = R.match_cast(y, R.Tensor((n,), "float32"))
            return (a, b)

    with pytest.raises(IRValueError, match="must be consistent: expected n = .*2.*binding of b"):
        CanonicalizeBindings()(Before)


def test_a_local_function_that_calls_itself_keeps_its_name():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), n: R.Tensor((), "bool")):
            @R.function
            def loop(c: R.Tensor((), "bool"), y: R.Tensor((2, 3), "float32")) -> R.Tensor(
                (2, 3), "float32"
            ):
                if c:
                    r = y
                else:
                    s = R.exp(y)
                    r: R.Tensor((2, 3), "float32") = loop(c, s)
                return r

            alias = loop
            z: R.Tensor((2, 3), "float32") = alias(n, x)
            return z

    made = CanonicalizeBindings()(Before)
    assert well_formed(made)
    assert "alias" not in made.script()
    flag = np.array(True)
    np.testing.assert_array_equal(run(made, "main", X, flag), run(Before, "main", X, flag))
