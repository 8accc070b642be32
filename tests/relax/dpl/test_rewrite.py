"""rewrite_call, rewrite_bindings and rewriters: Before/Expected, and the numbers stay."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.dpl import (
    PatternContext,
    PatternMatchingRewriter,
    TupleRewriter,
    is_const,
    is_op,
    is_tuple,
    rewrite_bindings,
    rewrite_call,
    wildcard,
)
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRTypeError, PassError

ANY = wildcard()
DOUBLE = is_op("relax.add")(ANY, ANY)


def to_product(_expr, matches):
    return relax.op.multiply(matches[ANY], relax.const(2.0, "float32"))


def run(func, *arrays):
    module = weft.IRModule({"main": func.with_attr("global_symbol", "main")})
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), weft.cpu())
    return machine["main"](*(weft.nd.array(array) for array in arrays)).numpy()


@R.function(private=True)
def doubled(x: R.Tensor((4,), "float32")):
    with R.dataflow():
        y = R.add(x, x)
        z = R.add(y, y)
        R.output(z)
    return z


def test_every_match_is_replaced():
    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.multiply(x, R.const(2.0, "float32"))
            z = R.multiply(y, R.const(2.0, "float32"))
            R.output(z)
        return z

    made = rewrite_call(DOUBLE, to_product, doubled)
    assert_structural_equal(made, expected)
    x = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(made, x), run(doubled, x))


def test_a_function_without_a_match_is_returned_as_it_is():
    assert rewrite_call(is_op("relax.exp")(ANY), to_product, doubled) is doubled
    assert rewrite_call(DOUBLE, lambda expr, _: expr, doubled) is doubled
    assert rewrite_call(DOUBLE, lambda _, __: None, doubled) is doubled


def test_a_pattern_of_several_bindings_takes_them_together():
    inner = is_op("relax.add")(ANY, ANY)

    @R.function(private=True)
    def expected(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            z = R.multiply(x, R.const(4.0, "float32"))
            R.output(z)
        return z

    def replace(_, matches):
        return relax.op.multiply(matches[ANY], relax.const(4.0, "float32"))

    assert_structural_equal(
        rewrite_call(is_op("relax.add")(inner, inner), replace, doubled), expected
    )


def test_bindings_outside_of_dataflow_are_rewritten_between_effects():
    @R.function(private=True, pure=False)
    def before(x: R.Tensor((4,), "float32")):
        y = R.add(x, x)
        _ = R.print(y, format="{}")
        z = R.add(y, y)
        return z

    @R.function(private=True, pure=False)
    def expected(x: R.Tensor((4,), "float32")):
        y = R.multiply(x, R.const(2.0, "float32"))
        _ = R.print(y, format="{}")
        z = R.multiply(y, R.const(2.0, "float32"))
        return z

    assert_structural_equal(rewrite_call(DOUBLE, to_product, before), expected)


def test_a_match_does_not_reach_across_an_effect():
    @R.function(private=True, pure=False)
    def before(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        _ = R.print(y, format="{}")
        z = R.negative(y)
        return z

    pattern = is_op("relax.negative")(is_op("relax.exp")(ANY))
    assert rewrite_call(pattern, lambda _, matches: matches[ANY], before) is before


def test_branches_are_rewritten():
    @R.function(private=True)
    def before(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        if c:
            y = R.add(x, x)
        else:
            y = R.exp(x)
        return y

    @R.function(private=True)
    def expected(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
        if c:
            y = R.multiply(x, R.const(2.0, "float32"))
        else:
            y = R.exp(x)
        return y

    assert_structural_equal(rewrite_call(DOUBLE, to_product, before), expected)


def test_what_a_replacement_repeats_is_computed_once():
    x = wildcard()
    pattern = is_op("relax.multiply")(x, is_const())

    @R.function(private=True)
    def before(a: R.Tensor((4,), "float32")):
        with R.dataflow():
            e = R.exp(a)
            m = R.multiply(e, R.const(2.0, "float32"))
            n = R.add(m, e)
            R.output(n)
        return n

    @R.function(private=True)
    def expected(a: R.Tensor((4,), "float32")):
        with R.dataflow():
            e = R.exp(a)
            m = R.add(e, e)
            n = R.add(m, e)
            R.output(n)
        return n

    made = rewrite_call(pattern, lambda _, ms: relax.op.add(ms[x], ms[x]), before)
    assert_structural_equal(made, expected)


def test_rewriting_repeats_until_nothing_matches():
    """The const moves up a chain of sums, one step a round."""
    lhs, rhs, factor = wildcard(), wildcard(), is_const()
    pattern = is_op("relax.multiply")(is_op("relax.add")(lhs, rhs), factor)

    @R.function(private=True)
    def before(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        with R.dataflow():
            c = R.add(a, b)
            d = R.add(c, a)
            e = R.multiply(d, R.const(3.0, "float32"))
            R.output(e)
        return e

    @R.function(private=True)
    def expected(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        with R.dataflow():
            a3 = R.multiply(a, R.const(3.0, "float32"))
            b3 = R.multiply(b, R.const(3.0, "float32"))
            c = R.add(a3, b3)
            d = R.add(c, a3)
            R.output(d)
        return d

    def replace(_, matches):
        constant = matches[factor]
        return matches[lhs] * constant + matches[rhs] * constant

    made = rewrite_call(pattern, replace, before)
    assert_structural_equal(made, expected)
    a, b = np.ones(4, "float32"), np.arange(4, dtype="float32")
    np.testing.assert_allclose(run(made, a, b), run(before, a, b))


def test_rules_that_do_not_end_are_an_error():
    lhs, rhs = wildcard(), wildcard()
    pattern = is_op("relax.subtract")(lhs, rhs)

    @R.function(private=True)
    def before(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
        c = R.subtract(a, b)
        return c

    def swap(_, matches):
        return relax.op.subtract(matches[rhs], matches[lhs])

    with pytest.raises(PassError, match=r"no end after \d+ rounds; a replacement matches"):
        rewrite_call(pattern, swap, before)


def test_the_other_side_of_an_or_is_tried_when_the_first_is_declined():
    first = is_op("relax.add")(wildcard(), wildcard())
    pattern = first | DOUBLE

    def replace(expr, matches):
        return expr if first in matches else to_product(expr, matches)

    assert_structural_equal(
        rewrite_call(pattern, replace, doubled), rewrite_call(DOUBLE, to_product, doubled)
    )


def test_rewriters_combine_with_or():
    exp, neg = is_op("relax.exp")(ANY), is_op("relax.negative")(ANY)
    both = PatternMatchingRewriter.from_pattern(
        exp, lambda _, ms: relax.op.sin(ms[ANY])
    ) | PatternMatchingRewriter.from_pattern(neg, lambda _, ms: relax.op.cos(ms[ANY]))

    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.exp(x)
            z = R.negative(y)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.sin(x)
            z = R.cos(y)
            return z

    assert_structural_equal(both(Before), Expected)
    assert both(Expected) is Expected


@R.function(private=True)
def two_products(
    x: R.Tensor((2, 3), "float32"), v: R.Tensor((3, 4), "float32"), w: R.Tensor((3, 5), "float32")
):
    with R.dataflow():
        p = R.matmul(x, v)
        e = R.exp(p)
        q = R.matmul(x, w)
        r = R.concat([e, q], axis=1)
        R.output(r)
    return r


def joined(matches, x, v, w):
    whole = relax.op.matmul(matches[x], relax.op.concat([matches[v], matches[w]], axis=1))
    return relax.op.split(whole, [4], axis=1)


def test_a_tuple_stands_for_bindings_anywhere():
    x, v, w = wildcard(), wildcard(), wildcard()
    matmul = is_op("relax.matmul")
    pattern = is_tuple([matmul(x, v), matmul(x, w)])
    made = rewrite_call(pattern, lambda _, matches: joined(matches, x, v, w), two_products)
    operators = [b.value.op.name for b in made.body.blocks[0].bindings if hasattr(b.value, "op")]
    assert operators.count("relax.matmul") == 1
    rng = np.random.default_rng(0)
    arrays = [rng.random(s, dtype="float32") for s in ((2, 3), (3, 4), (3, 5))]
    np.testing.assert_allclose(run(made, *arrays), run(two_products, *arrays), rtol=1e-5)


def test_a_tuple_whose_fields_need_each_other_is_left():
    @R.function(private=True)
    def before(x: R.Tensor((3, 3), "float32"), w: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            p = R.matmul(x, w)
            q = R.matmul(x, p)
            R.output(q)
        return q

    x, v, w = wildcard(), wildcard(), wildcard()
    matmul = is_op("relax.matmul")
    pattern = is_tuple([matmul(x, v), matmul(x, w)])
    assert rewrite_call(pattern, lambda _, matches: joined(matches, x, v, w), before) is before


def test_tuples_are_searched_up_to_three_fields():
    with pytest.raises(PassError, match="expected at most 3 patterns, got 4"):
        TupleRewriter([DOUBLE] * 4, to_product)(doubled)


def test_bindings_are_replaced_together():
    x, v, w = wildcard(), wildcard(), wildcard()
    with PatternContext() as context:
        first, second = is_op("relax.matmul")(x, v), is_op("relax.matmul")(x, w)

    def replace(matches, bindings):
        assert bindings[matches[first]].op.name == "relax.matmul"
        whole = joined(matches, x, v, w)
        return {matches[first]: whole[0], matches[second]: whole[1]}

    @R.function(private=True)
    def expected(
        x: R.Tensor((2, 3), "float32"),
        v: R.Tensor((3, 4), "float32"),
        w: R.Tensor((3, 5), "float32"),
    ):
        with R.dataflow():
            both = R.concat((v, w), axis=1)
            whole = R.matmul(x, both)
            parts = R.split(whole, [4], axis=1)
            p = parts[0]
            e = R.exp(p)
            q = parts[1]
            r = R.concat((e, q), axis=1)
            R.output(r)
        return r

    assert_structural_equal(rewrite_bindings(context, replace, two_products), expected)


def test_new_values_are_of_variables_that_the_block_binds():
    with PatternContext() as context:
        x = wildcard()
        is_op("relax.exp")(x)
    with pytest.raises(PassError, match="expected new values of variables that this block binds"):
        rewrite_bindings(context, lambda _, __: {two_products.params[0]: ANY}, two_products)


def test_a_rewriter_wants_a_module_or_a_function():
    rewriter = PatternMatchingRewriter.from_pattern(DOUBLE, to_product)
    with pytest.raises(IRTypeError, match="expected a module or a relax Function, got int"):
        rewriter(3)


def test_a_thousand_bindings_are_rewritten_in_a_round():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for index in range(1000):
                value = builder.emit(
                    relax.op.add(value, value) if index % 10 == 0 else relax.op.exp(value)
                )
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    made = rewrite_call(DOUBLE, to_product, builder.get()["main"])
    names = [b.value.op.name for b in made.body.blocks[0].bindings]
    assert names.count("relax.multiply") == 100
    assert "relax.add" not in names


def to_column(_expr, matches):
    return relax.op.expand_dims(matches[ANY], 1)


def to_half(_expr, matches):
    return relax.op.astype(relax.op.multiply(matches[ANY], relax.const(2.0, "float32")), "float16")


@pytest.mark.parametrize(("rule", "got"), [(to_column, r"\(4, 1\)"), (to_half, "float16")])
def test_a_replacement_of_another_type_is_refused_by_its_name(rule, got):
    told = rf"rewriter: {rule.__name__} replaces y: expected R.Tensor\(\(4,\), .*float32.*{got}"
    with pytest.raises(PassError, match=told):
        rewrite_call(DOUBLE, rule, doubled)


def test_a_rule_that_takes_something_else_is_refused_before_it_is_called():
    with pytest.raises(PassError, match=r"<lambda>: .*it is called with \(expr, matches\)"):
        PatternMatchingRewriter.from_pattern(wildcard(), lambda expr: expr)
    with pytest.raises(PassError, match=r"<lambda>: .*it is called with \(matches, bindings\)"):
        rewrite_bindings(PatternContext(), lambda bindings: bindings, None)


def test_each_way_to_rewrite_names_its_rule():
    with PatternContext() as context:
        x = wildcard()
        sums = is_op("relax.add")(x, x)
    other = is_op("relax.multiply")(wildcard(), wildcard())
    with pytest.raises(PassError, match="rewriter: to_column replaces y"):
        rewriters = [PatternMatchingRewriter.from_pattern(p, f)
                     for p, f in ((other, to_product), (DOUBLE, to_column))]  # fmt: skip
        (rewriters[0] | rewriters[1])(doubled)
    with pytest.raises(PassError, match="rewriter: column replaces y"):

        def column(matches, bindings):
            return {matches[sums]: relax.op.expand_dims(bindings[matches[sums]].args[0], 1)}

        column.__qualname__ = "column"
        rewrite_bindings(context, column, doubled)


def test_symbolic_shapes_that_may_agree_are_accepted():
    @R.function(private=True)
    def symbolic(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    def to_four(_expr, matches):
        return relax.op.concat([matches[ANY], matches[ANY]], 0)  # 2 * n: not n, unless n is 0

    assert rewrite_call(DOUBLE, to_four, symbolic) is not symbolic
