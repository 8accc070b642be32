"""The user's own functions in a module: te, TensorIR, packed functions, debugging."""

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft import relax, te, tir
from weft.relax.frontend import nn
from weft.relax.frontend.nn import op
from weft.script import tir as T


@T.prim_func(private=True)
def add_one(a: T.Buffer((3,), "float32")):
    for i in range(3):
        a[i] = a[i] + T.float32(1)


@T.prim_func(private=True)
def sum_and_difference(
    a: T.Buffer((3,), "float32"), b: T.Buffer((3,), "float32"),
    s: T.Buffer((3,), "float32"), d: T.Buffer((3,), "float32"),
):  # fmt: skip
    for i in range(3):
        s[i] = a[i] + b[i]
        d[i] = a[i] - b[i]


def test_tensor_expr_op(apply, random, export):
    def outer(a, b):
        return te.compute((a.shape[0], b.shape[0]), lambda i, j: a[i] * b[j], name="outer")

    def model(x, y):
        return op.tensor_expr_op(outer, "outer", [x, y], attrs={"note": 1})

    x, y = random(3), random(5)
    np.testing.assert_allclose(apply(model, x, y, dims=(["n"],)), np.outer(x, y), rtol=1e-6)
    mod = export(model, nn.spec.Tensor(["n"], "float32"), nn.spec.Tensor([5], "float32"))
    assert mod["outer"].attrs["note"] == 1


def test_tensor_expr_op_of_several_results_and_a_number(apply, random):
    def parts(a, k):
        low = te.compute((k,), lambda i: a[i], name="low")
        return [low, te.compute((a.shape[0] - k,), lambda i: a[i + k], name="high")]

    x = random(5)
    low, high = apply(lambda x: op.tensor_expr_op(parts, "parts", [x, 2]), x)
    np.testing.assert_array_equal(low, x[:2])
    np.testing.assert_array_equal(high, x[2:])


def test_tensor_ir_op_with_a_scalar(apply, random):
    @T.prim_func(private=True)
    def scaled(a: T.handle, b: T.handle, factor: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i, j in T.grid(n, 4):
            B[i, j] = A[i, j] * T.Cast("float32", factor)

    def model(x):
        out = nn.Tensor.placeholder(x.shape, "float32")
        return op.tensor_ir_op(scaled, "scaled", [x, tir.IntImm("int64", 3)], out)

    x = random(3, 4)
    np.testing.assert_allclose(apply(model, x, dims=(["n", 4],)), 3 * x, rtol=1e-6)


def test_tensor_ir_op_of_two_results_and_one_argument(apply, random):
    x, y = random(3), random(3)
    out = [nn.Tensor.placeholder([3], "float32")] * 2
    total, rest = apply(lambda x, y: op.tensor_ir_op(sum_and_difference, "both", [x, y], out), x, y)
    np.testing.assert_allclose(total, x + y)
    np.testing.assert_allclose(rest, x - y)


def test_tensor_ir_inplace_op(apply, random):
    x = random(3)

    def model(x):
        own = op.add(x, 0)
        out = nn.Tensor.placeholder([3], "float32")
        return op.tensor_ir_inplace_op(add_one, "add_one", own, 0, out)

    np.testing.assert_allclose(apply(model, x), x + 1)


def test_wrong_arguments_of_kernels(export):
    three = nn.spec.Tensor([3], "float32")
    out = nn.Tensor.placeholder([3], "float32")
    with pytest.raises(TypeError, match="tensor_ir_op args expect Tensor or ShapeExpr or PrimExpr"):
        export(lambda x: op.tensor_ir_op(add_one, "f", [x, "3"], out), three)
    with pytest.raises(TypeError, match="tensor_ir_inplace_op args expect Tensor.*but got float"):
        export(lambda x: op.tensor_ir_inplace_op(add_one, "f", [1.5], 0, out), three)
    with pytest.raises(TypeError, match="tensor_ir_op: expected a PrimFunc, got str"):
        export(lambda x: op.tensor_ir_op("f", "f", [x], out), three)
    with pytest.raises(TypeError, match="tensor_ir_op: out: expected an nn.Tensor, got tuple"):
        export(lambda x: op.tensor_ir_op(add_one, "f", [x], [(3,)]), three)


def test_extern(apply, random):
    @weft.register_func("test.nn.scale_and_shift", override=True)
    def scale_and_shift(x, factor, shift, word, out):
        assert word == "up"
        out[:] = weft.nd.array(x.numpy() * factor + shift)

    def model(x):
        return op.extern("test.nn.scale_and_shift", [x, 2, 0.5, "up"],
                         nn.Tensor.placeholder(x.shape, x.dtype))  # fmt: skip

    x = random(4)
    np.testing.assert_allclose(apply(model, x), 2 * x + 0.5, rtol=1e-6)


def test_extern_of_lists_and_several_results(export):
    def model(x, y):
        out = (nn.Tensor.placeholder([2], "float32"), nn.Tensor.placeholder(x.shape, "int32"))
        first, second = nn.extern("test.nn.any", [[x, y], x.shape[0]], out)
        assert (first.dtype, second.dtype) == ("float32", "int32")
        return first, second

    one = nn.spec.Tensor(["n"], "float32")
    text = export(model, one, nn.spec.Tensor([2], "float32")).script()
    assert 'R.call_dps_packed("test.nn.any", ((x0, x1), R.prim_value(n))' in text


def test_a_result_of_a_symbol_that_nothing_defines(export):
    out = nn.Tensor.placeholder(["m"], "float32")
    with pytest.raises(ValueError, match="what the methods built is not well-formed: main: .*m"):
        export(lambda x: op.extern("f", [x], out), nn.spec.Tensor(["n"], "float32"))


def test_extern_names_wrong_arguments(export):
    with pytest.raises(TypeError, match="extern: Unsupported input type: dict"):
        export(lambda x: op.extern("f", [{}], x), nn.spec.Tensor([2], "float32"))


class Noisy(nn.Module):
    def forward(self, x: nn.Tensor, n: tir.Var):
        op.print_(x)
        op.debug_func("test.nn.note", x, 1, 2.5, "text", n)
        return x + 1


def test_debug_functions_run_in_order(capsys):
    torch = pytest.importorskip("torch")
    seen = []
    weft.register_func("test.nn.note", lambda *args: seen.append(args), override=True)
    model = Noisy().jit({"forward": {"x": nn.spec.Tensor([2], "float32"), "n": "int"}}, debug=True)
    assert model["forward"](torch.tensor([1.0, 2.0]), 7).tolist() == [2, 3]
    ((line, tensor, *rest),) = seen
    assert "test_op_call.py:" in line
    assert tensor.numpy().tolist() == [1, 2]
    assert rest == [1, 2.5, "text", 7]
    printed = capsys.readouterr().out
    assert "test_op_call.py:" in printed
    assert "[1. 2.]" in printed


def test_debug_needs_the_mode(export):
    with pytest.raises(ValueError, match="Debugging is only supported when debug mode is on: expo"):
        Noisy().export_tvm({"forward": {"x": nn.spec.Tensor([2], "float32"), "n": int}})


def test_a_debug_function_that_is_not_registered():
    torch = pytest.importorskip("torch")

    class Model(nn.Module):
        def forward(self, x: nn.Tensor):
            op.debug_func("test.nn.nobody", x)
            return x

    model = Model().jit({"forward": {"x": nn.spec.Tensor([2], "float32")}}, debug=True)
    with pytest.raises(weft.TVMError, match="no function is registered under the name 'test.nn.no"):
        model["forward"](torch.zeros(2))


def test_operators_work_in_a_function_of_a_block_builder():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with bb.function("main", [x]):
        made = nn.Tensor(_expr=x) * 2
        bb.emit_func_output(made._expr)
    vm = relax.VirtualMachine(relax.build(bb.get()), weft.cpu())
    assert vm["main"](np.array([1, 2], "float32")).numpy().tolist() == [2, 4]


def test_whole_te_tensors_have_operators_in_a_fresh_process():
    """These come with topi, which the program need not import."""
    program = (
        "from weft.relax.frontend import nn\n"
        "class M(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return nn.tensor_expr_op(lambda a: a + 1, 'plus', [x])\n"
        "M().export_tvm({'forward': {'x': nn.spec.Tensor(['n'], 'float32')}})\n"
    )
    output_of(program)
