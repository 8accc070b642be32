"""@R.rewriter: rules written as modules."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.dpl import PatternMatchingRewriter
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import IRKeyError, IRTypeError, IRValueError, PassError


@R.rewriter
class Double:
    @R.function
    def pattern(x: R.Tensor("float32")):
        y = R.add(x, x)
        return y

    @R.function
    def replacement(x: R.Tensor("float32")):
        y = R.multiply(x, R.const(2.0, "float32"))
        return y


def test_a_rule_rewrites_functions_and_modules():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                y = R.exp(x)
                z = R.add(y, y)
                R.output(z)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            with R.dataflow():
                y = R.exp(x)
                z = R.multiply(y, R.const(2.0, "float32"))
                R.output(z)
            return z

    assert_structural_equal(Double(Before), Expected)
    assert_structural_equal(Double(Before["main"]), Expected["main"])
    assert Double(Expected) is Expected


def test_attributes_and_dtypes_of_the_rule_count():
    @R.rewriter
    class Untranspose:
        @R.function
        def pattern(x: R.Tensor("float32", ndim=2)):
            y = R.permute_dims(x, axes=[0, 1])
            return y

        @R.function
        def replacement(x: R.Tensor("float32", ndim=2)):
            return x

    @R.function(private=True)
    def transposed(x: R.Tensor((4, 4), "float32")):
        y = R.permute_dims(x, axes=[1, 0])
        return y

    @R.function(private=True)
    def kept(x: R.Tensor((4, 4), "float32")):
        y = R.permute_dims(x, axes=[0, 1])
        return y

    assert Untranspose(transposed) is transposed
    assert not Untranspose(kept).body.blocks


def test_symbols_of_a_rule_are_the_dimensions_found():
    @R.rewriter
    class Join:
        @R.function
        def pattern(
            a: R.Tensor(("n", "k"), "float32"),
            b: R.Tensor(("m", "k"), "float32"),
            x: R.Tensor(("k",), "float32"),
        ):
            p = R.matmul(a, x)
            q = R.matmul(b, x)
            return (p, q)

        @R.function
        def replacement(
            a: R.Tensor(("n", "k"), "float32"),
            b: R.Tensor(("m", "k"), "float32"),
            x: R.Tensor(("k",), "float32"),
        ):
            n = T.int64()
            m = T.int64()
            both = R.concat([a, b])
            whole = R.matmul(both, x)
            p: R.Tensor((n,), "float32") = R.strided_slice(whole, axes=[0], begin=[0], end=[n])
            q: R.Tensor((m,), "float32") = R.strided_slice(whole, axes=[0], begin=[n], end=[n + m])
            return (p, q)

    @R.function(private=True)
    def before(
        a: R.Tensor((2, 3), "float32"), b: R.Tensor((4, 3), "float32"), x: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            p = R.matmul(a, x)
            q = R.matmul(b, x)
            r = R.concat([q, p])
            R.output(r)
        return r

    @R.function(private=True)
    def expected(
        a: R.Tensor((2, 3), "float32"), b: R.Tensor((4, 3), "float32"), x: R.Tensor((3,), "float32")
    ):
        with R.dataflow():
            both = R.concat((a, b))
            whole = R.matmul(both, x)
            p = R.strided_slice(whole, axes=[0], begin=[0], end=[2])
            q = R.strided_slice(whole, axes=[0], begin=[2], end=[6])
            r = R.concat((q, p))
            R.output(r)
        return r

    assert_structural_equal(Join(before), expected)


@R.rewriter
class Outline:
    @R.function
    def pattern(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        return y

    @R.function
    def replacement(x: R.Tensor((4,), "float32")):
        y = Outline.helper(x)
        return y

    @R.function(private=True)
    def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.negative(x)
        return y


def test_functions_of_a_rule_are_added_under_free_names():
    @I.ir_module
    class Before:
        @R.function(private=True)
        def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = R.sin(x)
            return y

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Before
            y = R.exp(x)
            z = cls.helper(y)
            return z

    made = Outline(Before)
    assert sorted(gvar.name_hint for gvar in made.functions) == ["helper", "helper_1", "main"]
    machine = relax.VirtualMachine(relax.build(made, target="llvm"), weft.cpu())
    x = np.arange(4, dtype="float32")
    np.testing.assert_allclose(machine["main"](weft.nd.array(x)).numpy(), np.sin(-x), rtol=1e-5)


def test_functions_of_a_rule_that_nothing_calls_are_not_added():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = R.sin(x)
            return y

    assert Outline(Before) is Before


def test_a_rule_with_functions_needs_a_module():
    @R.function(private=True)
    def func(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        return y

    with pytest.raises(PassError, match="the replacement calls helper, which a module must hold"):
        Outline(func)


def test_a_rule_has_two_functions_of_one_type():
    one = weft.IRModule({"pattern": _identity()})
    with pytest.raises(IRKeyError, match="expected a module with a function 'replacement'"):
        PatternMatchingRewriter.from_module(one)
    with pytest.raises(IRValueError, match="must have the same signature"):

        @R.rewriter
        class Wrong:
            @R.function
            def pattern(x: R.Tensor((4,), "float32")):
                return x

            @R.function
            def replacement(x: R.Tensor((5,), "float32")):
                return x


def _identity():
    @R.function(private=True)
    def same(x: R.Tensor((4,), "float32")):
        return x

    return same


def test_a_rule_adds_no_public_function():
    with pytest.raises(IRValueError, match="'other' is publicly exposed; make it private=True"):

        @R.rewriter
        class Wrong:
            @R.function
            def pattern(x: R.Tensor((4,), "float32")):
                return x

            @R.function
            def replacement(x: R.Tensor((4,), "float32")):
                return x

            @R.function
            def other(x: R.Tensor((4,), "float32")):
                return x


def test_a_pattern_holds_no_control_flow():
    with pytest.raises(IRTypeError, match="a pattern cannot hold If"):

        @R.rewriter
        class Wrong:
            @R.function
            def pattern(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
                if c:
                    y = R.exp(x)
                else:
                    y = R.sin(x)
                return y

            @R.function
            def replacement(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
                if c:
                    y = R.exp(x)
                else:
                    y = R.sin(x)
                return y
