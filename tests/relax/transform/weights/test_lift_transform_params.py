"""LiftTransformParams: what is lifted, in which order it comes back, and what functions share."""

import numpy as np
import pytest

from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import PassContext
from weft.relax.analysis import well_formed
from weft.relax.reference import run
from weft.relax.transform import LiftTransformParams
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError

X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.arange(12, dtype="float32").reshape(4, 3)
B = np.ones(4, "float32")


@I.ir_module
class Dense:
    @R.function
    def main(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((4,), "float32")
    ):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w)
            one = R.ones(R.shape([4]), "float32")
            c = R.add(b, one)
            y = R.matmul(x, t)
            z = R.add(y, one)
            u = R.add(z, R.add(b, c))
            R.output(u)
        return u


def test_what_depends_on_weights_only_is_lifted():
    made = LiftTransformParams()(Dense)
    assert well_formed(made)
    assert sorted(gvar.name_hint for gvar in made.get_global_vars()) == [
        "main",
        "main_transform_params",
    ]
    text = made["main"].script()
    assert "permute_dims" not in text
    assert "R.ones" in text  # made anew: it is no weight
    weights = run(made, "main_transform_params", (W, B))
    np.testing.assert_array_equal(weights[0], W.T)
    np.testing.assert_array_equal(run(made, "main", X, *weights), run(Dense, "main", X, W, B))
    executable = relax.build(made, "llvm")
    machine = relax.VirtualMachine(executable)
    native = machine["main"](X, *machine["main_transform_params"]((W, B)))
    np.testing.assert_allclose(native.numpy(), run(Dense, "main", X, W, B), rtol=1e-6)


def test_lifting_twice_composes_the_functions():
    once = LiftTransformParams()(Dense)
    twice = LiftTransformParams()(once)
    assert_structural_equal(twice, once)


def test_a_weight_used_as_it_is_comes_before_what_is_computed(check):
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            w: R.Tensor((4, 3), "float32"),
            v: R.Tensor((4, 3), "float32"),
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                t = R.permute_dims(w)
                y = R.matmul(x, t)
                z = R.matmul(y, v)
                R.output(z)
            return z

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"),
            v: R.Tensor((4, 3), "float32"),
            t: R.Tensor((3, 4), "float32"),
        ):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                y = R.matmul(x, t)
                z = R.matmul(y, v)
                R.output(z)
            return z

        @R.function
        def main_transform_params(
            params: R.Tuple(R.Tensor((4, 3), "float32"), R.Tensor((4, 3), "float32")),
        ):
            R.func_attr({"num_input": 0})
            with R.dataflow():
                w = params[0]
                t = R.permute_dims(w)
                v = params[1]
                out = (v, t)
                R.output(out)
            return out

    check(LiftTransformParams(), Before, Expected)


def test_a_lifted_result_may_be_returned_and_a_mark_stops_lifting():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((4, 3), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                t = R.permute_dims(w)
                s = R.builtin.stop_lift_params(t)
                u = R.exp(s)
                y = R.matmul(x, u)
                R.output(t, y)
            return (y, t)

    made = LiftTransformParams()(Before)
    assert well_formed(made)
    assert "R.exp" in made["main"].script()
    assert "stop_lift_params" not in made.script()
    weights = run(made, "main_transform_params", (W,))
    got, expected = run(made, "main", X, *weights), run(Before, "main", X, W)
    np.testing.assert_array_equal(got[0], expected[0])
    np.testing.assert_array_equal(got[1], W.T)


def test_symbols_that_only_weights_define_come_as_a_shape():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor(("n", 3), "float32")):
            R.func_attr({"num_input": 1})
            n = T.int64()
            with R.dataflow():
                s = R.sum(w, axis=[0, 1])
                z = R.ones(R.shape([n, 2]), "float32")
                y = R.matmul(z, x)
                u = R.add(y, s)
                R.output(u)
            return u

    made = LiftTransformParams()(Before)
    assert well_formed(made)
    names = [param.name_hint for param in made["main"].params]
    assert names == ["x", "vars_from_compile_time_params", "s"]
    weights = run(made, "main_transform_params", (W,))
    assert tuple(weights[0]) == (4,)
    np.testing.assert_array_equal(run(made, "main", X, *weights), run(Before, "main", X, W))


@I.ir_module
class Two:
    @R.function
    def first(x: R.Tensor((2, 3), "float32"), w: R.Tensor(("n", 3), "float32")):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w)
            again = R.permute_dims(w)
            e = R.exp(t)
            y = R.matmul(x, e)
            z = R.matmul(x, again)
            u = R.add(y, z)
            R.output(u)
        return u

    @R.function
    def second(w: R.Tensor(("m", 3), "float32")):
        R.func_attr({"num_input": 0})
        with R.dataflow():
            t = R.permute_dims(w)
            s = R.sin(t)
            R.output(s)
        return s

    @R.function
    def third(x: R.Tensor((2, 3), "float32")):
        return x


def test_functions_share_what_all_of_them_compute():
    made = LiftTransformParams(shared_transform=True)(Two)
    assert well_formed(made)
    assert sorted(gvar.name_hint for gvar in made.get_global_vars()) == [
        "first", "second", "third", "transform_params",
    ]  # fmt: skip
    text = made["transform_params"].script()
    assert text.count("permute_dims") == 1  # for both of its names
    assert "R.exp" not in text
    assert "R.sin" not in text
    weights = run(made, "transform_params", (W,))
    np.testing.assert_array_equal(run(made, "first", X, *weights), run(Two, "first", X, W))
    np.testing.assert_array_equal(run(made, "second", *weights), run(Two, "second", W))


def test_functions_may_be_named():
    made = LiftTransformParams(shared_transform=["second"])(Two)
    assert made["first"] is Two["first"]
    np.testing.assert_allclose(run(made, "transform_params", (W,))[0], np.sin(W.T), rtol=1e-6)
    with pytest.raises(PassError, match="expected 'third' to be a graph function .* num_input"):
        LiftTransformParams(["third"])(Two)


def test_functions_of_different_weights_share_nothing():
    @I.ir_module
    class Before:
        @R.function
        def first(w: R.Tensor((4, 3), "float32")):
            R.func_attr({"num_input": 0})
            return w

        @R.function
        def second(w: R.Tensor((4, 3), "float16")):
            R.func_attr({"num_input": 0})
            return w

        @R.function
        def third(w: R.Tensor((4, 3), "float32"), v: R.Tensor((4, 3), "float32")):
            R.func_attr({"num_input": 0})
            return v

    with pytest.raises(PassError, match="weight w of second: expected .*float32.* as in first"):
        LiftTransformParams(["first", "second"])(Before)
    with pytest.raises(PassError, match="first has 1, third has 2"):
        LiftTransformParams(["first", "third"])(Before)


def test_weights_may_be_let_go_of_when_they_are_read():
    with PassContext(config={"relax.lift_transform_params.consume_params": True}):
        made = LiftTransformParams()(Dense)
    assert well_formed(made)
    assert made["main_transform_params"].script().count("tuple_reset_item") == 2
    machine = relax.VirtualMachine(relax.build(made, "llvm"))
    weights = machine["main_transform_params"]((W, B))
    native = machine["main"](X, *weights)
    np.testing.assert_allclose(native.numpy(), run(Dense, "main", X, W, B), rtol=1e-6)
