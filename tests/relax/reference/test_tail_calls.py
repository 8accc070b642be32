"""Loops and mutual recursion in the reference interpreter: they take no stack, and are checked."""

import sys

import numpy as np
import pytest

from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.relax.expr import BindingBlock, Call, Function, SeqExpr, Var, VarBinding
from weft.relax.reference import run
from weft.relax.struct_info import TensorStructInfo
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import VerifyError

STEPS = 3000


@I.ir_module
class Loops:
    @R.function
    def main(n: R.Tensor((), "int64"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        one = R.const(1, "int64")

        @R.function
        def step(i: R.Tensor((), "int64"), s: R.Tensor((2,), "float32")) -> R.Tensor(
            (2,), "float32"
        ):
            go = R.less(i, n)
            if go:
                following = R.add(i, one)
                state = R.add(s, x)
                r = step(following, state)
            else:
                r = R.negative(s)
            return r

        zero = R.const(0, "int64")
        result = step(zero, x)
        renamed = result
        return renamed

    @R.function
    def is_even(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        cls = Loops
        done = R.equal(n, R.const(0, "int64"))
        if done:
            r = R.const(True, "bool")
        else:
            before = R.subtract(n, R.const(1, "int64"))
            r = cls.is_odd(before)
        return r

    @R.function
    def is_odd(n: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        cls = Loops
        done = R.equal(n, R.const(0, "int64"))
        if done:
            r = R.const(False, "bool")
        else:
            before = R.subtract(n, R.const(1, "int64"))
            r = cls.is_even(before)
        return r


def deepest(name, *arguments):
    """The most Python frames that were open where a binding was computed."""
    depths = []

    def observe(_function, _binding, _value):
        depth, frame = 0, sys._getframe()
        while frame is not None:
            depth, frame = depth + 1, frame.f_back
        depths.append(depth)

    run(Loops, name, *arguments, observe=observe)
    return max(depths)


def test_many_steps():
    x = np.array([1.0, 2.0], "float32")
    assert run(Loops, "main", np.array(STEPS), x).tolist() == [-STEPS - 1, -2 * STEPS - 2]
    assert run(Loops, "main", np.array(0), x).tolist() == [-1, -2]


def test_mutual_recursion():
    assert run(Loops, "is_even", np.array(STEPS))
    assert not run(Loops, "is_odd", np.array(STEPS))
    assert run(Loops, "is_odd", np.array(7))


def test_steps_take_no_stack():
    x = np.ones(2, "float32")
    assert deepest("main", np.array(50), x) == deepest("main", np.array(3), x)
    assert deepest("is_even", np.array(50)) == deepest("is_even", np.array(4))


def test_an_observer_sees_every_binding():
    seen = []
    run(
        Loops, "is_even", np.array(2),
        observe=lambda function, binding, _value: seen.append((function, binding.var.name_hint)),
    )  # fmt: skip
    assert seen[:5] == [
        ("is_even", "done"), ("is_even", "before"), ("is_odd", "done"), ("is_odd", "before"),
        ("is_even", "done"),
    ]  # fmt: skip
    ends = [function for function, name in seen if name == "r"]
    assert ends == ["is_even", "is_odd", "is_odd", "is_even", "is_even"]


def test_a_caller_whose_place_was_taken_still_checks_the_value():
    @R.function
    def negated(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        return R.negative(x)

    x, result = Var("x", TensorStructInfo([3], "float32")), TensorStructInfo([7], "float32")
    lying, callee = Var("lying", result), GlobalVar("negated")
    body = SeqExpr([BindingBlock([VarBinding(lying, Call(callee, [x]))])], lying)
    mod = IRModule({"main": Function([x], body, result), callee: negated})
    with pytest.raises(VerifyError, match=r"main: lying: expected shape \(7,\), got \(3,\)"):
        run(mod, "main", np.ones(3, "float32"))
