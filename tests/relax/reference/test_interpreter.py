"""The interpreter of graphs: language constructs, errors that name the place, lowered modules."""

import re

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax import transform
from weft.relax.expr import Function, Var, VarBinding
from weft.relax.reference import run
from weft.relax.struct_info import TensorStructInfo
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import TVMError, VerifyError
from weft.testing import assert_allclose

RANDOM = np.random.default_rng(7)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


@I.ir_module
class Perceptron:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(
        ("n", 3), "float32"
    ):
        with R.dataflow():
            product = R.matmul(x, w)
            positive = R.nn.relu(product)
            total = R.sum(positive, axis=[1], keepdims=True)
            out = R.add(positive, total)
            R.output(out)
        return out


def test_operators_are_computed_and_the_arguments_stay_as_they_were():
    x, w = floats(5, 4), floats(4, 3)
    given = x.copy()
    positive = np.maximum(x.astype("float64") @ w, 0)
    made = run(Perceptron, "main", x, weft.nd.array(w))
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, positive + positive.sum(1, keepdims=True), rtol=1e-5)
    assert np.array_equal(x, given)


LOWERING = [
    transform.LegalizeOps(), transform.FuseTIR(), transform.ToNonDataflow(),
    transform.CallTIRRewrite(), transform.StaticPlanBlockMemory(), transform.LowerAllocTensor(),
    transform.KillAfterLastUse(), transform.LowerRuntimeBuiltin(), transform.ComputePrimValue(),
    transform.VMShapeLower(), transform.AttachGlobalSymbol(),
]  # fmt: skip


@pytest.mark.parametrize("stage", range(1, len(LOWERING) + 1))
def test_lowered_modules_run_and_compute_the_same(stage):
    mod, x, w = Perceptron, floats(2, 4), floats(4, 3)
    for lower in LOWERING[:stage]:
        mod = lower(mod)
    np.testing.assert_allclose(run(mod, "main", x, w), run(Perceptron, "main", x, w), rtol=1e-5)


@I.ir_module
class Control:
    @R.function
    def power(x: R.Tensor((2,), "float32"), n: R.Tensor((), "int64")) -> R.Tensor((2,), "float32"):
        stop = R.less_equal(n, R.const(0, "int64"))
        if stop:
            made = R.ones_like(x)
        else:
            less = R.subtract(n, R.const(1, "int64"))
            rest: R.Tensor((2,), "float32") = Control.power(x, less)
            made = R.multiply(rest, x)
        return made

    @R.function
    def tuples(pair: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("m",), "float32"))) -> R.Tuple(
        R.Tensor(("n + m",), "float32"), R.Shape(["m", "n"])
    ):
        n, m = T.int64(), T.int64()
        joined = R.concat((pair[0], pair[1]), axis=0)
        out = (joined, R.shape([m, n]))
        return out

    @R.function
    def unknown(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        y = R.exp(x)
        z = R.add(y, y)
        return z

    @R.function
    def cast(x: R.Tensor) -> R.Tensor(("k", 2), "float32"):
        k = T.int64()
        y = R.match_cast(x, R.Tensor((k, 2), "float32"))
        return y


def test_recursion_and_branches():
    x = np.array([2.0, 3.0], "float32")
    assert run(Control, "power", x, np.array(3)).tolist() == [8.0, 27.0]


def test_tuples_and_symbols_of_their_fields():
    a, b = floats(2), floats(3)
    joined, shape = run(Control, "tuples", (a, b))
    assert np.array_equal(joined, np.concatenate([a, b]))
    assert shape == (3, 2)


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (1, 2, 3)])
def test_tensors_of_unknown_rank_keep_their_float_type(shape):
    x = floats(*shape)
    made = run(Control, "unknown", x)
    assert made.dtype == np.float32
    np.testing.assert_allclose(made, 2 * np.exp(x), rtol=1e-6)


def test_a_match_cast_that_fails_names_both_shapes():
    assert run(Control, "cast", floats(3, 2)).shape == (3, 2)
    with pytest.raises(TVMError, match=r"cast: match_cast y: .*\(3, 2\), that is \(k, 2\), got"):
        run(Control, "cast", floats(3, 4))
    with pytest.raises(TVMError, match="expected 2 dimensions, got shape"):
        run(Control, "cast", floats(3))


def test_wrong_arguments_name_the_function_and_the_parameter():
    with pytest.raises(TVMError, match=r"main: expected 2 arguments \(x, w\), got 1"):
        run(Perceptron, "main", floats(2, 4))
    with pytest.raises(TVMError, match=r"main: argument 1 \(w\): expected shape \(4, 3\), got"):
        run(Perceptron, "main", floats(2, 4), floats(5, 3))
    with pytest.raises(TVMError, match=r"argument 0 \(x\): expected dtype float32, got float64"):
        run(Perceptron, "main", np.zeros((2, 4)), floats(4, 3))
    with pytest.raises(TVMError, match="has no function 'other' to run; it has: main"):
        run(Perceptron, "other")


def test_a_wrong_deduction_is_an_error_that_names_the_binding():
    function = Perceptron["main"]
    block = function.body.blocks[0]
    old = block.bindings[1]
    lying = Var("positive", TensorStructInfo([7, 3], "float32"))
    bindings = [block.bindings[0], VarBinding(lying, old.value)]
    made = Function(
        function.params,
        relax.SeqExpr([relax.BindingBlock(bindings)], lying),
        TensorStructInfo([7, 3], "float32"),
    )
    expected = r"main: positive: expected shape \(7, 3\), got \(2, 3\): the struct info of .*relu"
    with pytest.raises(VerifyError, match=expected):
        run(made, "main", floats(2, 4), floats(4, 3))


def test_errors_inside_say_in_which_binding():
    @R.function
    def look(x: R.Tensor((3,), "float32"), i: R.Tensor((1,), "int64")):
        y = R.take(x, i, axis=0)
        return y

    with pytest.raises(TVMError, match="index 5 is out of range for 3") as caught:
        run(look, "look", floats(3), np.array([5]))
    assert any(re.search(r"in look: y = R.take", note) for note in caught.value.__notes__)


def test_local_functions_capture_values_and_call_themselves():
    @I.ir_module
    class Local:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.add(x, x)

            @R.function
            def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                w = R.add(z, y)
                return w

            a = inner(x)
            b = inner(a)
            return b

    x = floats(2)
    np.testing.assert_allclose(run(Local, "main", x), 5 * x, rtol=1e-6)


def test_prim_funcs_packed_functions_and_in_place_calls():
    @weft.register_func("weft.test.reference.twice", override=True)
    def twice(x):
        return weft.nd.array(2 * x.numpy())

    @weft.register_func("weft.test.reference.fill", override=True)
    def fill(x, out):
        out.copyfrom(x.numpy() + 1)

    @I.ir_module
    class Calls:
        @T.prim_func
        def grow(x: T.Buffer((2,), "float32"), k: T.int64):
            for i in range(2):
                x[i] = x[i] * T.Cast("float32", k)

        @T.prim_func
        def shift(a: T.handle, b: T.handle):
            n = T.int64()
            x = T.match_buffer(a, (n,), "float32")
            y = T.match_buffer(b, (n,), "float32")
            for i in range(n):
                y[i] = x[i] + T.float32(1)

        @R.function
        def main(x: R.Tensor((2,), "float32")):
            cls = Calls
            a = R.call_tir(cls.shift, (x,), out_sinfo=R.Tensor((2,), "float32"))
            b = R.call_dps_packed(
                "weft.test.reference.fill", (a,), out_sinfo=R.Tensor((2,), "float32")
            )
            c = R.call_pure_packed(
                "weft.test.reference.twice", b, sinfo_args=R.Tensor((2,), "float32")
            )
            d = R.call_tir_inplace(
                cls.grow,
                (c,),
                inplace_indices=0,
                out_sinfo=R.Tensor((2,), "float32"),
                tir_vars=R.shape([3]),
            )
            return d

    x = floats(2)
    np.testing.assert_allclose(run(Calls, "main", x), 3 * 2 * (x + 2), rtol=1e-6)


def test_a_block_of_many_bindings_needs_no_stack():
    builder = relax.BlockBuilder()
    x = relax.Var("x", TensorStructInfo([2], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(3000):
                value = builder.emit(relax.op.add(value, x))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    assert run(builder.get(), "main", np.ones(2, "float32")).tolist() == [3001.0, 3001.0]


def test_every_binding_can_be_observed():
    seen = []
    run(
        Perceptron, "main", floats(1, 4), floats(4, 3),
        observe=lambda function, binding, value: seen.append(
            (function, binding.var.name_hint, value.shape)
        ),
    )  # fmt: skip
    names = ["product", "positive", "total", "out"]
    assert [(f, name) for f, name, _ in seen] == [("main", name) for name in names]
    assert [shape for *_, shape in seen] == [(1, 3), (1, 3), (1, 1), (1, 3)]


def test_squeeze_of_a_symbolic_extent_keeps_it_at_run_time():
    x = relax.Var("x", TensorStructInfo([1, weft.tir.Var("n", "int64")], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.squeeze(x)))
    assert run(builder.get(), "main", floats(1, 1)).shape == (1,)


def test_interpreter_agrees_with_native_code():
    x, w = floats(6, 4), floats(4, 3)
    machine = relax.VirtualMachine(relax.build(Perceptron, "llvm"), weft.cpu())
    native = machine["main"](weft.nd.array(x), weft.nd.array(w))
    assert_allclose(native.numpy(), run(Perceptron, "main", x, w), rtol=1e-5, atol=1e-6)


def test_an_operator_without_reference_is_an_error_that_says_so():
    x = Var("x", TensorStructInfo([2], "float32"))
    call = relax.op.ccl.allreduce(x)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(call))
    with pytest.raises(TVMError, match=r"relax.ccl.allreduce has no numpy reference"):
        run(builder.get(), "main", floats(2))


def test_boundaries_out_of_order_are_a_fault():
    @R.function
    def find(x: R.Tensor((1,), "int32"), b: R.Tensor((2,), "int32")):
        y = R.bucketize(x, b)
        return y

    one = np.array([1], "int32")
    assert run(find, "find", one, np.array([0, 5], "int32")).tolist() == [1]
    with pytest.raises(TVMError, match="bucketize: the boundaries are not in order"):
        run(find, "find", one, np.array([5, 0], "int32"))
