"""HoistLoopInvariants: what steps have in common is computed once; nothing fails that did not."""

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

import weft
from weft import relax, tir
from weft.relax.reference import run
from weft.relax.transform import HoistLoopInvariants, LambdaLift
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 3)).astype("float32")
W = RNG.standard_normal((3, 3)).astype("float32")


def steps(count):
    return np.array(count, "int64")


def test_a_product_of_values_from_outside_is_computed_before_the_loop(check):
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32"), n: R.Tensor((), "int64")
        ):
            @R.function
            def loop(i: R.Tensor((), "int64"), s: R.Tensor((2, 3), "float32")) -> R.Tensor(
                (2, 3), "float32"
            ):
                more = R.less(i, n)
                if more:
                    j = R.add(i, R.const(1, "int64"))
                    turned = R.permute_dims(w)
                    product = R.matmul(x, turned)
                    longer = R.permute_dims(x)
                    squares = R.matmul(s, longer)
                    t = R.add(R.matmul(squares, x), product)
                    r: R.Tensor((2, 3), "float32") = loop(j, t)
                else:
                    r = s
                return r

            y: R.Tensor((2, 3), "float32") = loop(R.const(0, "int64"), x)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32"), n: R.Tensor((), "int64")
        ):
            turned = R.permute_dims(w)
            product = R.matmul(x, turned)

            @R.function
            def loop(i: R.Tensor((), "int64"), s: R.Tensor((2, 3), "float32")) -> R.Tensor(
                (2, 3), "float32"
            ):
                more = R.less(i, n)
                if more:
                    j = R.add(i, R.const(1, "int64"))
                    longer = R.permute_dims(x)
                    squares = R.matmul(s, longer)
                    t = R.add(R.matmul(squares, x), product)
                    r: R.Tensor((2, 3), "float32") = loop(j, t)
                else:
                    r = s
                return r

            y: R.Tensor((2, 3), "float32") = loop(R.const(0, "int64"), x)
            return y

    for count in (0, 1, 3):
        after = check(HoistLoopInvariants(), Before, Expected, X, W, steps(count))
    check(HoistLoopInvariants(), after, after)


def test_a_state_that_is_handed_on_is_no_state(check):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, "k"), "float32"), n: R.Tensor((), "int64")):
            k = T.int64()

            @R.function
            def loop(
                i: R.Tensor((), "int64"),
                kept: R.Tensor((2, k), "float32"),
                s: R.Tensor((2, k), "float32"),
            ) -> R.Tuple(R.Tensor((2, k), "float32"), R.Tensor((2, k), "float32")):
                more = R.less(i, n)
                if more:
                    j = R.add(i, R.const(1, "int64"))
                    wide = R.expand_dims(kept, axis=[0])
                    same = R.add(wide, R.const(0.0, "float32"))
                    again = R.squeeze(same, axis=[0])
                    root = R.sqrt(R.abs(kept))
                    t = R.add(s, root)
                    r = loop(j, again, t)
                else:
                    r = (kept, s)
                return r

            y = loop(R.const(0, "int64"), x, x)
            return y

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, "k"), "float32"), n: R.Tensor((), "int64")):
            k = T.int64()
            positive = R.abs(x)
            root = R.sqrt(positive)

            @R.function
            def loop(i: R.Tensor((), "int64"), s: R.Tensor((2, k), "float32")) -> R.Tuple(
                R.Tensor((2, k), "float32"), R.Tensor((2, k), "float32")
            ):
                more = R.less(i, n)
                if more:
                    j = R.add(i, R.const(1, "int64"))
                    t = R.add(s, root)
                    r = loop(j, t)
                else:
                    r = (x, s)
                return r

            y = loop(R.const(0, "int64"), x)
            return y

    check(HoistLoopInvariants(), Before, Expected, X, steps(3))


def loop_model(build):
    """``build(x, k, i)`` in each step of a loop over i; its value is added to a state."""

    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, 3), "float32"))
    k = relax.Var("k", R.Tensor((2,), "int64"))
    n = relax.Var("n", R.Tensor((), "int64"))
    i = relax.Var("i", R.Tensor((), "int64"))
    s = relax.Var("s", R.Tensor((2, 3), "float32"))
    kind = R.Callable((i.struct_info, s.struct_info), s.struct_info)
    own = relax.Var("loop", kind)
    with bb.function("main", [x, k, n]):
        inner = relax.BlockBuilder()
        inner.begin_scope([i, s])
        inner.begin_binding_block()
        more = inner.emit(relax.op.less(i, n))
        inner.begin_binding_block()
        following = inner.emit(relax.op.add(i, relax.const(1, "int64")))
        state = inner.emit(relax.op.add(s, build(inner, x, k, i)))
        again = inner.emit(relax.Call(own, [following, state]))
        step = relax.SeqExpr([inner.end_block()], again)
        end = relax.SeqExpr([], s)
        result = inner.emit(relax.If(more, step, end))
        body = relax.SeqExpr([inner.end_block()], result)
        inner.end_scope()
        bb.emit_normalized(relax.VarBinding(own, relax.Function([i, s], body, s.struct_info)))
        bb.emit_func_output(bb.emit(relax.Call(own, [relax.const(0, "int64"), x])))
    return relax.transform.Normalize()(bb.get())


def test_a_slice_at_the_step_stays():
    """Its extent tells nothing of the symbol that it begins at."""

    def row_of_the_step(bb, x, _, i):
        at = bb.emit(relax.op.tensor_to_shape(bb.emit(relax.op.reshape(i, [1]))))
        start = tir.Var("start", "int64")
        bb.match_cast(at, relax.ShapeStructInfo([start]))
        row = relax.op.strided_slice(x, [0], [start], [start + 1], assume_inbound=True)
        return bb.emit(relax.op.exp(bb.emit(row)))

    mod = loop_model(row_of_the_step)
    after = HoistLoopInvariants()(mod)
    weft.ir.assert_structural_equal(after, mod)
    none = np.zeros(2, "int64")
    expected = X + np.exp(X[0]) + np.exp(X[1])
    np.testing.assert_allclose(run(LambdaLift()(after), "main", X, none, steps(2)), expected, 1e-6)


@pytest.mark.parametrize(
    "build",
    [
        lambda bb, x, k, _: bb.emit(relax.op.take(x, k, axis=0)),
        lambda bb, x, k, _: bb.emit(
            relax.op.multiply(
                x,
                relax.op.astype(
                    relax.op.expand_dims(relax.op.floor_divide(k, k), axis=[1]), "float32"
                ),
            )
        ),
        lambda bb, x, _, i: bb.emit(
            relax.op.multiply(relax.op.astype(i, "float32"), relax.op.reshape(x, [2, 3]))
        ),
        lambda bb, x, _, __: bb.emit(relax.op.reshape(x, [2, 3])),
    ],
    ids=["an index", "a divisor", "the step", "only moved"],
)
def test_what_may_fail_or_changes_or_costs_nothing_stays(build):
    """A loop without steps does not read ``x[k]``; so nobody may do it before the loop."""
    mod = loop_model(build)
    after = HoistLoopInvariants()(mod)
    weft.ir.assert_structural_equal(after, mod)
    far = np.array([7, -9], "int64")
    np.testing.assert_array_equal(run(LambdaLift()(after), "main", X, far, steps(0)), X)


def onnx_loop(divisor):
    """y = x; for each step: y = tanh(y + x @ w / divisor); x goes through a sum with zero."""
    value = oh.make_tensor_value_info
    body = oh.make_graph(
        [
            oh.make_node("MatMul", ["carried", "w"], ["p"]),
            oh.make_node("Div", ["p", "divisor"], ["q"]),
            oh.make_node("Add", ["y", "q"], ["t"]),
            oh.make_node("Tanh", ["t"], ["z"]),
            oh.make_node("Unsqueeze", ["carried", "axis"], ["wide"]),
            oh.make_node("Add", ["wide", "zero"], ["sum"]),
            oh.make_node("Squeeze", ["sum", "axis"], ["kept"]),
            oh.make_node("Identity", ["going"], ["going_on"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("y", TensorProto.FLOAT, None),
            value("carried", TensorProto.FLOAT, None),
        ],
        [
            value("going_on", TensorProto.BOOL, []),
            value("z", TensorProto.FLOAT, None),
            value("kept", TensorProto.FLOAT, None),
        ],
    )
    numbers = {
        "w": W,
        "divisor": np.array(divisor, "float32"),
        "axis": np.array([0], "int64"),
        "zero": np.zeros(1, "float32"),
    }
    graph = oh.make_graph(
        [oh.make_node("Loop", ["n", "", "x", "x"], ["last", "x_again"], body=body)],
        "loop",
        [value("x", TensorProto.FLOAT, ["rows", 3]), value("n", TensorProto.INT64, [])],
        [value("last", TensorProto.FLOAT, None), value("x_again", TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in numbers.items()],
    )
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)


def test_a_loop_of_onnx_multiplies_once():
    model = onnx_loop(2.0)
    mod = relax.frontend.onnx.from_onnx(model)
    mod = mod[0] if isinstance(mod, tuple) else mod
    lifted = LambdaLift()(HoistLoopInvariants()(mod))
    (loop,) = [gvar for gvar in lifted.get_global_vars() if gvar.name_hint != "main"]
    assert "R.matmul" not in lifted[loop].script()
    assert "R.matmul" in lifted["main"].script()
    compiled = weft.compile(model, target="llvm -num-cores=1")
    for rows, count in ((2, 0), (1, 1), (5, 4)):
        x = RNG.standard_normal((rows, 3)).astype("float32")
        expected = x
        for _ in range(count):
            expected = np.tanh(expected + x @ W / 2)
        last, again = compiled(x, steps(count))
        np.testing.assert_allclose(np.asarray(last), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.asarray(again), x)
