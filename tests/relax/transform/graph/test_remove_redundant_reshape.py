"""RemoveRedundantReshape: reshapes that change nothing, or that another one follows."""

import numpy as np

from weft import relax
from weft.relax import op
from weft.relax.transform import RemoveRedundantReshape
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T


def test_only_the_last_of_a_chain_stays(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                a = R.reshape(x, (2, 6))
                b = R.reshape(a, (12,))
                c = R.reshape(b, (4, 3))
                d = R.reshape(c, (4, 3))
                out = R.exp(d)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                c = R.reshape(x, (4, 3))
                out = R.exp(c)
                R.output(out)
            return out

    data = np.arange(12, dtype="float32").reshape(3, 4)
    made = check(RemoveRedundantReshape(), Before, Expected, data)
    check_native(Before, made, data)
    check(RemoveRedundantReshape(), made, made)


def test_there_and_back_is_the_tensor(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            with R.dataflow():
                a = R.reshape(x, (n * 4,))
                out = R.reshape(a, (n, 2 + 2))
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            return x

    check(RemoveRedundantReshape(), Before, Expected)


def test_an_inner_reshape_that_others_use_stays(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                a = R.reshape(x, (2, 6))
                b = R.reshape(a, (12,))
                out = (a, b)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                a = R.reshape(x, (2, 6))
                b = R.reshape(x, (12,))
                out = (a, b)
                R.output(out)
            return out

    data = np.arange(12, dtype="float32").reshape(3, 4)
    check_native(Before, check(RemoveRedundantReshape(), Before, Expected, data), data)


def test_what_another_block_hides_is_not_reached_for(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            with R.dataflow():
                e = R.exp(x)
                a = R.reshape(e, (12,))
                R.output(a)
            between = R.exp(x)  # noqa: F841 - keeps the two blocks apart
            with R.dataflow():
                b = R.reshape(a, (4, 3))
                R.output(b)
            return b

    check(RemoveRedundantReshape(), Before, Before, np.ones((3, 4), "float32"))


def chain(count):
    x = relax.Var("x", relax.TensorStructInfo((3, 4), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for index in range(count):
                value = bb.emit(op.reshape(value, (12,) if index % 2 else (4, 3)))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


def test_cost_is_linear(calls):
    small, large = chain(30), chain(240)
    made = RemoveRedundantReshape()(large)
    assert len(relax.analysis.get_var2val(made["main"])) == 1
    few, many = (calls(RemoveRedundantReshape(), mod) for mod in (small, large))
    assert many < 1.35 * 8 * few
