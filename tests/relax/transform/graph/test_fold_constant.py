"""FoldConstant: constant parts are computed by compiled code at build time."""

import numpy as np
import pytest

from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform import FoldConstant, LegalizeOps
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

DATA = np.arange(6, dtype="float32").reshape(2, 3)
INFO = TensorStructInfo((2, 3), "float32")


def folded(mod):
    made = FoldConstant()(mod)
    assert relax.analysis.well_formed(made)
    return made


@pytest.fixture
def constant():
    return relax.const(DATA)


@pytest.mark.parametrize("lowered", [False, True])
def test_constant_part_is_computed(lowered, build, evaluate, constant):
    mod = build(lambda x: op.add(x, op.multiply(constant, op.nn.relu(constant))), INFO)
    made = folded(LegalizeOps()(mod) if lowered else mod)
    bindings = made["main"].body.blocks[0].bindings
    assert len(bindings) == 1
    np.testing.assert_array_equal(evaluate(LegalizeOps()(made), DATA), DATA + DATA * DATA)


def test_tuples_are_opened(build, evaluate, constant):
    def make(x):
        parts = relax.BlockBuilder.current().emit(op.split(constant, 3, axis=1))
        return op.add(x, relax.TupleGetItem(parts, 1))

    made = folded(LegalizeOps()(build(make, INFO)))
    assert len(made["main"].body.blocks[0].bindings) == 1
    np.testing.assert_array_equal(evaluate(made, DATA), DATA + DATA[:, 1:2])


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("make", [op.permute_dims, op.nn.relu])
def test_what_several_calls_compute_of_one_constant_is_one_constant(make, lowered, build, constant):
    """Layers that share a weight share its layouts; other attributes and constants have theirs."""
    other = relax.const(DATA)

    def parts(x):
        made = [make(constant), make(constant), make(other), op.permute_dims(constant, [0, 1])]
        return relax.Tuple([op.multiply(x, x), *made])

    mod = build(parts, INFO)
    made = folded(LegalizeOps()(mod) if lowered else mod)
    returned = made["main"].body.blocks[0].bindings[-1].value
    first, second, third, fourth = [item.data for item in returned.fields[1:]]
    assert first is second
    assert first is not third
    np.testing.assert_array_equal(first.numpy(), third.numpy())
    np.testing.assert_array_equal(fourth.numpy(), DATA)


def test_what_depends_on_inputs_stays(build):
    mod = build(lambda x: op.add(x, x), INFO)
    assert FoldConstant()(mod) is mod


def test_large_results_of_small_inputs_stay(build):
    scalar = relax.const(1.0, "float32")
    mod = build(lambda x: op.broadcast_to(scalar, (1024, 1024)), INFO)
    assert_structural_equal(folded(mod), mod)


def test_a_result_of_numpy_that_is_read_only_is_copied(build, evaluate, constant):
    mod = build(lambda x: op.add(x, op.broadcast_to(constant, (2, 3))), INFO)
    made = folded(mod)
    assert len(made["main"].body.blocks[0].bindings) == 1
    np.testing.assert_array_equal(evaluate(LegalizeOps()(made), DATA), DATA + DATA)


def test_effects_stay(constant):
    bb = relax.BlockBuilder()
    with bb.function("main", [], pure=False):
        bb.emit(op.print(constant, format="{}"))
        bb.emit_func_output(bb.emit(op.exp(constant)))
    made = folded(bb.get())
    values = [b.value for block in made["main"].body.blocks for b in block.bindings]
    assert isinstance(values[0], relax.Call)
    assert isinstance(made["main"].body.body, relax.Constant)


def test_arguments_that_are_tuples_of_numbers_do_not_hinder(build, evaluate, constant):
    mod = build(lambda x: op.add(x, op.strided_slice(constant, [0], [1], [2])), INFO)
    made = folded(mod)
    assert len(made["main"].body.blocks[0].bindings) == 1
    np.testing.assert_array_equal(evaluate(LegalizeOps()(made), DATA), DATA + DATA[1:2])


def test_a_tuple_that_is_an_argument_of_the_function_is_no_constant():
    x = relax.Var("x", relax.TupleStructInfo([INFO, INFO]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(op.concat(x, 0)))
    mod = bb.get()
    assert_structural_equal(folded(mod), mod)


def test_kernels_of_symbolic_buffers_are_folded_at_the_sizes_of_the_call():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            cls = Module
            one = R.const(np.ones((2, 3), "float32"))
            y = R.call_tir(cls.doubled, (one,), out_sinfo=R.Tensor((2, 3), "float32"))
            z = R.add(x, y)
            return z

        @T.prim_func(private=True)
        def doubled(a: T.handle, b: T.handle):
            n, m = T.int64(), T.int64()
            A = T.match_buffer(a, (n, m))
            B = T.match_buffer(b, (n, m))
            for i, j in T.grid(n, m):
                with T.block("doubled"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] + A[vi, vj]

    made = folded(Module)
    (binding,) = made["main"].body.blocks[0].bindings
    np.testing.assert_array_equal(binding.value.args[1].data.numpy(), np.full((2, 3), 2.0))


def test_shapes_that_are_computed_as_tensors_are_folded(build):
    def make(x):
        shape = op.shape_to_tensor(relax.ShapeExpr([2, 3]))
        swapped = op.flip(shape, axis=0)
        bb = relax.BlockBuilder.current()
        return op.reshape(x, bb.emit(op.tensor_to_shape(swapped)))

    made = folded(build(make, INFO))
    (binding,) = made["main"].body.blocks[0].bindings
    assert binding.var.struct_info == TensorStructInfo((3, 2), "float32")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint8", "int64"])
@pytest.mark.parametrize(
    "make",
    [
        op.add, op.subtract, op.multiply, op.divide, lambda x, y: op.negative(x),
        lambda x, y: op.sqrt(x) if str(x.struct_info.dtype)[0] == "f" else op.add(x, x),
        lambda x, y: op.permute_dims(x), lambda x, y: op.flatten(x),
        lambda x, y: op.reshape(x, (4, -1)), lambda x, y: op.expand_dims(x, [0, 2]),
        lambda x, y: op.add(x, op.reshape(y, (1, 5, 4))),
        lambda x, y: op.layout_transform(x, lambda i, j: (j // 2, i, j % 2)),
    ],
)  # fmt: skip
def test_numpy_and_compiled_code_give_the_same_bits(make, dtype, build, monkeypatch):
    rng = np.random.default_rng(0)
    kind = dtype.startswith("float")
    values = [
        (rng.standard_normal((5, 4)) * 50 if kind else rng.integers(1, 100, (5, 4))).astype(dtype)
        for _ in range(2)
    ]
    x, y = [relax.const(value) for value in values]

    def body(z):
        made = relax.BlockBuilder.current().emit(make(x, y))
        return op.concat([z, op.reshape(made, (-1,))])

    mod = build(body, TensorStructInfo((1,), dtype))

    def constant(module):
        found = []
        relax.analysis.post_order_visit(
            module["main"], lambda e: found.append(e) if isinstance(e, relax.Constant) else None
        )
        return [item.data.numpy() for item in found]

    by_numpy = constant(FoldConstant()(mod))
    monkeypatch.setattr("weft.relax.transform.graph.fold_constant.fold_by_numpy", lambda call: None)
    compiled = constant(FoldConstant()(mod))
    assert len(by_numpy) == len(compiled) == 1
    np.testing.assert_array_equal(by_numpy[0], compiled[0])
