"""Normalize: nested calls get bindings, neighbouring blocks of one kind are one block."""

import numpy as np
import pytest

from weft import relax
from weft.ir.module import IRModule
from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform import Normalize
from weft.script import ir as I
from weft.script import relax as R

INFO = TensorStructInfo((2, 3), "float32")
DATA = np.linspace(-1, 1, 6, dtype="float32").reshape(2, 3)


def bind(var, value):
    return relax.VarBinding(var, value)


def variables(names, kind=relax.Var):
    return [kind(name, INFO) for name in names.split()]


def module(x, blocks, result):
    body = relax.SeqExpr(blocks, result)
    func = relax.Function([x], body, INFO, attrs={"global_symbol": "main"})
    return IRModule({"main": func})


@I.ir_module
class Joined:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        with R.dataflow():
            a: R.Tensor((2, 3), "float32") = R.exp(x)
            b: R.Tensor((2, 3), "float32") = R.negative(a)
            R.output(a, b)
        c: R.Tensor((2, 3), "float32") = R.add(a, b)
        d: R.Tensor((2, 3), "float32") = R.tanh(c)
        return d


def test_neighbouring_blocks_are_joined(check):
    x, a, b, c, d = variables("x a b c d")
    before = module(
        x,
        [
            relax.DataflowBlock([]),
            relax.DataflowBlock([bind(a, op.exp(x))]),
            relax.BindingBlock([]),
            relax.DataflowBlock([bind(b, op.negative(a))]),
            relax.BindingBlock([bind(c, op.add(a, b))]),
            relax.BindingBlock([bind(d, op.tanh(c))]),
        ],
        d,
    )
    check(Normalize(), before, Joined, DATA)


def test_what_is_normal_stays_the_same_object(check):
    check(Normalize(), Joined, Joined, DATA)


def test_blocks_of_a_branch_are_joined(check):
    x, a, b, c, out = variables("x a b c out")
    blocks = [relax.DataflowBlock([bind(a, op.exp(x))]), relax.DataflowBlock([bind(b, a)])]
    other = relax.SeqExpr([relax.BindingBlock([bind(c, op.tanh(x))])], c)
    value = relax.If(relax.const(True), relax.SeqExpr(blocks, b), other)
    before = module(x, [relax.BindingBlock([bind(out, value)])], out)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            if R.const(True):
                with R.dataflow():
                    a: R.Tensor((2, 3), "float32") = R.exp(x)
                    b: R.Tensor((2, 3), "float32") = a
                    R.output(a, b)
                out: R.Tensor((2, 3), "float32") = b
            else:
                c: R.Tensor((2, 3), "float32") = R.tanh(x)
                out: R.Tensor((2, 3), "float32") = c
            return out

    check(Normalize(), before, Expected, DATA)


def nested(kind):
    """``y`` is bound to a sequence of a plain, a dataflow and a plain block."""
    x, a, q, u, z, y, out = variables("x a q u z y out")
    [w] = variables("w", relax.DataflowVar)
    inner = relax.SeqExpr(
        [
            relax.BindingBlock([bind(q, op.negative(a))]),
            relax.DataflowBlock([bind(w, op.exp(q)), bind(u, op.tanh(w))]),
            relax.BindingBlock([bind(z, op.add(u, q))]),
        ],
        z,
    )
    block = kind([bind(a, op.exp(x)), bind(y, inner), bind(out, op.add(y, a))])
    return module(x, [block], out)


def test_a_dataflow_block_inside_of_a_plain_one_stays_one(check):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a: R.Tensor((2, 3), "float32") = R.exp(x)
            q: R.Tensor((2, 3), "float32") = R.negative(a)
            with R.dataflow():
                w: R.Tensor((2, 3), "float32") = R.exp(q)
                u: R.Tensor((2, 3), "float32") = R.tanh(w)
                R.output(u)
            z: R.Tensor((2, 3), "float32") = R.add(u, q)
            y: R.Tensor((2, 3), "float32") = z
            out: R.Tensor((2, 3), "float32") = R.add(y, a)
            return out

    made = check(Normalize(), nested(relax.BindingBlock), Expected, DATA)
    assert Normalize()(made) is made


def test_a_dataflow_block_takes_in_plain_blocks_of_a_sequence_inside(check):
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            with R.dataflow():
                a: R.Tensor((2, 3), "float32") = R.exp(x)
                q: R.Tensor((2, 3), "float32") = R.negative(a)
                w: R.Tensor((2, 3), "float32") = R.exp(q)
                u: R.Tensor((2, 3), "float32") = R.tanh(w)
                z: R.Tensor((2, 3), "float32") = R.add(u, q)
                y: R.Tensor((2, 3), "float32") = z
                out: R.Tensor((2, 3), "float32") = R.add(y, a)
                R.output(a, q, u, z, y, out)
            return out

    made = check(Normalize(), nested(relax.DataflowBlock), Expected, DATA)
    assert Normalize()(made) is made


@pytest.mark.parametrize("kind", [relax.BindingBlock, relax.DataflowBlock])
def test_what_is_normalised_compiles_to_the_same(kind, check_native):
    before = nested(kind)
    check_native(before, Normalize()(before), DATA)
