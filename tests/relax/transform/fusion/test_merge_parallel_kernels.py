"""MergeParallelKernels: neighbours whose parallel loops share a partition are one kernel."""

import numpy as np
import pytest

import weft
from weft import dlight, relax, tir
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform import (
    AnnotateTIROpPattern,
    CanonicalizeBindings,
    FuseOps,
    FuseTIR,
    LegalizeOps,
)
from weft.relax.transform.fusion.merge_parallel_kernels import MergeParallelKernels
from weft.relax.transform.host.rewrite_dataflow_reshape import RewriteDataflowReshape
from weft.target.target import Target
from weft.tir.stmt import For, ForKind

pytestmark = pytest.mark.sampled(3)

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"
BEFORE = Sequential([
    LegalizeOps(), RewriteDataflowReshape(), AnnotateTIROpPattern(), FuseOps(), FuseTIR(),
    dlight.ScheduleGeneratedFunctions(dlight.cpu.Default()), CanonicalizeBindings(),
])  # fmt: skip


def module_of(body, *shapes, outputs=1):
    """``body(builder, *tensors)`` in a dataflow block, in kernels with schedules."""
    tensors = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float32"))
        for i, shape in enumerate(shapes)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", tensors):
        with builder.dataflow():
            results = body(builder, *tensors)
            out = builder.emit_output(
                results if outputs == 1 else relax.Tuple([builder.emit(one) for one in results])
            )
        builder.emit_func_output(out)
    with Target(TARGET):
        return BEFORE(builder.get())


def merged(mod):
    with Target(TARGET):
        return MergeParallelKernels()(mod)


def kernels_of(mod):
    """The names of the PrimFuncs that are called, each with its parallel loops."""
    calls = [call for call in collect(mod["main"], Call) if call.op.name == "relax.call_tir"]
    return {call.args[0].name_hint: parallel_extents(mod[call.args[0]]) for call in calls}


def parallel_extents(func):
    loops = [loop for loop in collect(func.body, For) if loop.kind is ForKind.PARALLEL]
    return [loop.extent.value for loop in loops]


def native(mod, arrays):
    machine = relax.VirtualMachine(weft.relax.build(mod, target="llvm -num-cores=2"), weft.cpu())
    return [leaf.numpy() for leaf in leaves(machine["main"](*map(weft.nd.array, arrays)))]


def assert_same(before, after, *shapes):
    """Merging changes no bit."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    assert well_formed(after)
    expected = native(before, arrays)
    for one, other in zip(expected, native(after, arrays), strict=True):
        np.testing.assert_array_equal(one, other)
    return expected


def leaves(value):
    return [value] if hasattr(value, "shape") else [leaf for item in value for leaf in leaves(item)]


def queries_keys_values(builder, x, *weights):
    """Three products of one matrix, of which two get another shape."""
    made = [builder.emit(op.matmul(x, weight)) for weight in weights]
    return [made[0], *[op.reshape(one, [-1]) for one in made[1:]]]


@pytest.mark.parametrize("rows", [1, 7, 17, 64])
def test_parallel_products_are_one_kernel(rows):
    shapes = [(rows, 24), (24, 192), (24, 192), (24, 192)]
    before = module_of(queries_keys_values, *shapes, outputs=3)
    after = merged(before)
    [(name, loops)] = kernels_of(after).items()
    assert name == "matmul_by_3"
    assert len(loops) == 1
    assert_same(before, after, *shapes)


def test_the_interpreter_agrees():
    shapes = [(3, 2), (2, 192), (2, 192)]
    before = module_of(queries_keys_values, *shapes, outputs=2)
    after = merged(before)
    assert len(kernels_of(after)) == 1
    arrays = [np.random.default_rng(1).standard_normal(shape, np.float32) for shape in shapes]
    expected = [arrays[0] @ arrays[1], (arrays[0] @ arrays[2]).reshape(-1)]
    for one, other in zip(run(after, "main", *arrays), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_widths_that_have_no_partition_in_common():
    shapes = [(16, 8), (8, 1056), (8, 144), (8, 144)]
    before = module_of(queries_keys_values, *shapes, outputs=3)
    after = merged(before)
    assert list(kernels_of(after)) == ["matmul", "matmul1_by_2"]
    assert_same(before, after, *shapes)


def gated(builder, x, gate, up):
    """A product that is multiplied by what the other one gives at the same place."""
    gate = builder.emit(op.nn.silu(op.matmul(x, gate)))
    return op.multiply(builder.emit(op.matmul(x, up)), gate)


def test_what_only_the_next_kernel_reads_is_no_tensor():
    shapes = [(32, 16), (16, 1056), (16, 1056)]
    before = module_of(gated, *shapes)
    after = merged(before)
    [(name, loops)] = kernels_of(after).items()
    assert len(kernels_of(before)) == 2
    assert len(loops) == 1
    assert "_and_" in name
    [call] = [call for call in collect(after["main"], Call) if call.op.name == "relax.call_tir"]
    assert isinstance(call.struct_info, relax.TensorStructInfo)
    assert_same(before, after, *shapes)


def twice(builder, x, weight):
    """A product of a product: each iteration would need what all of the first wrote."""
    return op.matmul(builder.emit(op.matmul(x, weight)), weight)


def reshaped(builder, x):
    """A kernel that reads what another one writes by another shape."""
    return op.negative(builder.emit(op.reshape(builder.emit(op.sum(x, [1])), [8, 8])))


@pytest.mark.parametrize(
    ("body", "shapes"),
    [(twice, [(16, 192), (192, 192)]), (reshaped, [(64, 96)])],
)
def test_neighbours_that_stay_apart(body, shapes):
    before = module_of(body, *shapes)
    calls = [call for call in collect(before["main"], Call) if call.op.name == "relax.call_tir"]
    assert len(calls) == 2
    assert merged(before) is before


def test_rows_go_from_kernel_to_kernel():
    def body(builder, x):
        sums = builder.emit(op.sum(x, [1], keepdims=True))
        return op.nn.softmax(builder.emit(op.divide(x, sums)), -1), sums

    before = module_of(body, (24, 96), outputs=2)
    after = merged(before)
    assert len(kernels_of(after)) < len(kernels_of(before))
    assert_same(before, after, (24, 96))


@pytest.mark.parametrize("shapes", [[(0, 8), (8, 192), (8, 192)], [(1, 1), (1, 1), (1, 1)]])
def test_nothing_and_one(shapes):
    def body(builder, x, *weights):
        return [builder.emit(op.matmul(x, weight)) for weight in weights]

    before = module_of(body, *shapes, outputs=2)
    assert_same(before, merged(before), *shapes)


@pytest.mark.parametrize("count", [1, 5])
def test_rows_of_unknown_number(count):
    shapes = [(tir.Var("n", "int64"), 24), (24, 192), (24, 192)]
    before = module_of(queries_keys_values, *shapes, outputs=2)
    after = merged(before)
    assert list(kernels_of(after)) == ["matmul_by_2"]
    assert_same(before, after, (count, 24), *shapes[1:])


def test_equal_groups_share_a_kernel():
    def body(builder, x, *weights):
        for first in range(0, 4, 2):
            pair = [builder.emit(op.matmul(x, weight)) for weight in weights[first : first + 2]]
            x = builder.emit(op.sum(op.stack(pair, 0), [0]))
        return x

    shapes = [(16, 192)] + [(192, 192)] * 4
    after = merged(module_of(body, *shapes))
    calls = [call.args[0].name_hint for call in collect(after["main"], Call)
             if call.op.name == "relax.call_tir"]  # fmt: skip
    assert calls.count("matmul_by_2") == 2


def test_the_default_pipeline_merges_the_products_of_attention():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(torch.nn.Linear(96, 192) for _ in range(3))

        def forward(self, x):
            q, k, v = [part(x).reshape(2, 8, 4, 48).transpose(1, 2) for part in self.parts]
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    net, x = Net().eval(), torch.randn(2, 8, 96)
    model = weft.compile(net, (x,), target="llvm -num-cores=2", cache=False)
    assert "_by_3" in str(model.profile(x))
    with torch.no_grad():
        torch.testing.assert_close(model(x), net(x))
