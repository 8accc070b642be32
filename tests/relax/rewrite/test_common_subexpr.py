"""Common subexpressions, on the level that pattern rewriting uses."""

from weft.ir import assert_structural_equal
from weft.relax.rewrite.canonical import canonicalize_bindings
from weft.relax.rewrite.common_subexpr import eliminate_common_subexpr
from weft.script import relax as R


def cleaned(func):
    return canonicalize_bindings(eliminate_common_subexpr(func))


def test_a_repeated_value_is_computed_once():
    @R.function(private=True)
    def before(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            b = R.add(x, y)
            c = R.multiply(a, b)
            R.output(c)
        return c

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.add(x, y)
            c = R.multiply(a, a)
            R.output(c)
        return c

    assert_structural_equal(cleaned(before), expected)
    assert eliminate_common_subexpr(expected) is expected


def test_values_with_other_attributes_or_effects_stay():
    @R.function(private=True, pure=False)
    def func(x: R.Tensor((4, 4), "float32")):
        a = R.sum(x, axis=0)
        b = R.sum(x, axis=1)
        p = R.call_packed("f", a, sinfo_args=R.Tensor((4,), "float32"))
        q = R.call_packed("f", a, sinfo_args=R.Tensor((4,), "float32"))
        return (b, p, q)

    assert eliminate_common_subexpr(func) is func


def test_a_value_of_one_branch_is_not_known_in_the_other():
    @R.function(private=True)
    def func(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        if c:
            y = R.exp(x)
        else:
            z = R.exp(x)
            y = R.negative(z)
        return y

    assert_structural_equal(eliminate_common_subexpr(func), func)


def test_an_output_keeps_its_name_outside_of_its_block():
    @R.function(private=True)
    def func(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(x)
            c = R.add(a, b)
            R.output(b, c)
        d = R.multiply(b, c)
        return d

    made = cleaned(func)
    assert [len(block.bindings) for block in made.body.blocks] == [2, 1]
