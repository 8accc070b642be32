"""ReuseDyingArguments: kernels write over what nothing needs later, and over nothing else."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.expr import Call
from weft.relax.reference import run
from weft.relax.transform import DeadCodeElimination, LegalizeOps, RewriteDataflowReshape
from weft.relax.transform.memory.concatenate_in_place import ConcatenateInPlace
from weft.relax.transform.memory.over_argument import over_argument
from weft.relax.transform.memory.reuse_dying_arguments import ReuseDyingArguments
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

N = (3, 4)


def graph_of(body, *shapes):
    """``body(emit, builder, *tensors)`` in a dataflow block; its results are the outputs."""
    tensors = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float32"))
        for i, shape in enumerate(shapes)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", tensors):
        with builder.dataflow():
            made = body(builder.emit, builder, *tensors)
            made = made if isinstance(made, tuple) else (made,)
            outputs = [builder.emit_output(item) for item in made]
        builder.emit_func_output(outputs[0] if len(outputs) == 1 else relax.Tuple(outputs))
    return builder.get()


def kernels_of(graph):
    """The graph as calls of PrimFuncs and views."""
    return RewriteDataflowReshape()(LegalizeOps()(graph))


def arrays_of(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype("float32") for shape in shapes]


def in_place(mod):
    """(the kernel, the position of what it writes over) of the calls in place, in order."""
    calls = [call for call in collect(mod["main"], Call) if "inplace_indices" in (call.attrs or {})]
    return [(call.args[0].name_hint, int(call.attrs["inplace_indices"][0])) for call in calls]


def check_results(graph, mod, *arrays):
    """The module gives what the graph gives, in the interpreter and natively, and twice."""
    assert well_formed(mod)
    expected = run(graph, "main", *arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    kept = [array.copy() for array in arrays]
    for main in (lambda *given: run(mod, "main", *given), machine["main"], machine["main"]):
        found = main(*arrays)
        found = found if isinstance(found, tuple | list) else (found,)
        for mine, its in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.asarray(mine), its, rtol=1e-5, atol=1e-5)
    for before, after in zip(kept, arrays, strict=True):
        np.testing.assert_array_equal(after, before)


# What is written over.


def a_chain(emit, _, x):
    return op.exp(emit(op.negative(emit(op.exp(x)))))


def the_second_one(emit, _, x):
    return op.subtract(x, emit(op.exp(x)))


def what_is_read_before(emit, _, x):
    a = emit(op.exp(x))
    b = emit(op.sum(a, [1], keepdims=True))
    return op.divide(a, b)


def a_view(emit, _, x):
    a = emit(op.exp(x))
    return op.negative(emit(op.reshape(a, (12,))))


def a_field_of_a_tuple(emit, _, x):
    both = emit(relax.Tuple([emit(op.exp(x)), x]))
    return op.negative(emit(relax.TupleGetItem(both, 0)))


def one_of_two(emit, _, x):
    a, b = emit(op.exp(x)), emit(op.negative(x))
    return op.add(a, b), op.multiply(b, x)


def what_keeps_its_shape_only(emit, _, x):
    a = emit(op.exp(x))
    b = emit(op.sum(a, [0]))
    return op.add(a, b)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (a_chain, [("tir_negative_inplace", 0), ("tir_exp_inplace", 0)]),
        (the_second_one, [("subtract_inplace", 1)]),
        (what_is_read_before, [("divide_inplace", 0)]),
        (a_view, [("tir_negative_inplace", 0)]),
        (a_field_of_a_tuple, [("tir_negative_inplace", 0)]),
        (one_of_two, [("add_inplace", 0), ("multiply_inplace", 0)]),
        (what_keeps_its_shape_only, [("add_inplace", 0)]),
    ],
)
def test_kernels_write_over(body, found):
    graph = graph_of(body, N)
    after = DeadCodeElimination()(ReuseDyingArguments()(kernels_of(graph)))
    assert in_place(after) == found
    check_results(graph, after, *arrays_of(N))


# What is not.


def a_parameter(_, __, x):
    return op.exp(x)


def a_constant(emit, _, x):
    k = emit(relax.const(np.ones(N, "float32")))
    return op.add(k, x)


def what_is_needed_later(emit, _, x):
    a = emit(op.exp(x))
    b = emit(op.negative(a))
    return op.sum(b), op.sum(a)


def what_has_a_longer_view(emit, _, x):
    a = emit(op.exp(x))
    flat = emit(op.reshape(a, (12,)))
    b = emit(op.negative(a))
    return op.sum(b), op.sum(emit(op.multiply(flat, flat)))


def what_a_tuple_returns(emit, _, x):
    a = emit(op.exp(x))
    both = emit(relax.Tuple([a, x]))
    return op.sum(emit(op.negative(a))), both


def what_a_match_cast_names(emit, builder, x):
    a = emit(op.exp(x))
    same = builder.match_cast(a, relax.TensorStructInfo(N, "float32"))
    b = emit(op.negative(a))
    return op.sum(b), op.sum(same)


def one_given_twice(emit, _, x):
    a = emit(op.exp(x))
    return op.add(a, a)


def one_given_by_two_names(emit, _, x):
    a = emit(op.exp(x))
    again = emit(op.reshape(emit(op.reshape(a, (12,))), N))
    return op.add(a, again)


def another_shape(emit, _, x):
    return op.add(emit(op.sum(x, [0], keepdims=True)), x)


def a_transpose(emit, _, x):
    return op.permute_dims(emit(op.matmul(x, x)))


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        *[(body, N) for body in (
            a_parameter, a_constant, what_is_needed_later, what_has_a_longer_view,
            what_a_tuple_returns, what_a_match_cast_names, one_given_twice, one_given_by_two_names,
            another_shape,
        )],
        (a_transpose, (4, 4)),
    ],
)  # fmt: skip
def test_others_get_memory_of_their_own(body, shape):
    before = kernels_of(graph_of(body, shape))
    assert ReuseDyingArguments()(before) is before


@I.ir_module
class Foreign:
    """Dataflow variables that are memory of somebody else."""

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Foreign
        with R.dataflow():
            a = cls.stored(x)
            b = R.exp(a)
            c = R.call_pure_packed("test.cached", x, sinfo_args=R.Tensor((4,), "float32"))
            d = R.exp(c)
            e = R.negative(x)
            R.output(b, d, e)
        with R.dataflow():
            f = R.exp(e)
            R.output(f)
        return b, d, f

    @R.function(private=True)
    def stored(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.const([1.0, 2.0, 3.0, 4.0], "float32")


def test_memory_of_others_is_not_written():
    before = LegalizeOps()(Foreign)
    assert ReuseDyingArguments()(before) is before


def test_what_a_local_function_reads_is_needed_while_it_is():
    @I.ir_module
    class Local:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                a = R.exp(x)

                @R.function
                def more(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                    s = R.add(a, y)
                    return s

                b = R.negative(a)
                c = more(b)
                R.output(c)
            return c

    assert in_place(ReuseDyingArguments()(LegalizeOps()(Local))) == []


def test_calls_of_one_kernel_share_the_one_in_place():
    def body(emit, _, x):
        y = x
        for _ in range(10):
            y = emit(op.multiply(emit(op.exp(y)), x))
        return y

    after = DeadCodeElimination()(ReuseDyingArguments()(kernels_of(graph_of(body, N))))
    names = {var.name_hint for var in after.functions}
    assert names == {"main", "tir_exp", "tir_exp_inplace", "multiply_inplace"}
    assert len(in_place(after)) == 19


def test_parts_of_a_concatenation_stay_parts():
    def body(emit, _, x, y):
        parts = [emit(op.negative(emit(op.exp(one)))) for one in (x, y)]
        return op.exp(emit(op.concat(parts, 0)))

    graph = graph_of(body, N, N)
    joined = ConcatenateInPlace()(LegalizeOps()(graph))
    after = DeadCodeElimination()(ReuseDyingArguments()(joined))
    assert in_place(after) == [("tir_negative_part1", 1), ("tir_exp1_inplace", 0)]
    check_results(graph, after, *arrays_of(N, N))


def test_attributes_that_number_buffers_stay():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), W: T.Buffer((4,), "float32"),
             C: T.Buffer((4,), "float32")):  # fmt: skip
        T.func_attr({"layout_free_buffers": [1]})
        for i in range(4):
            with T.block("C"):
                v = T.axis.spatial(4, i)
                C[v] = A[v] * W[v]

    made = over_argument(main, 0)
    assert [made.buffer_map[param].name for param in made.params] == ["A", "W"]
    assert list(made.attrs["layout_free_buffers"]) == [1]


# Whole models.


def a_residual_block(emit, _, x, w, b):
    a = emit(op.nn.relu(emit(op.nn.conv2d(x, w, padding=1))))
    c = emit(op.nn.relu(emit(op.nn.conv2d(a, w, padding=1))))
    d = emit(op.add(emit(op.nn.conv2d(c, w, padding=1)), b))
    return op.nn.relu(emit(op.add(d, a)))


def what_its_own_windows_see(emit, _, x, w, b):
    a = emit(op.nn.relu(emit(op.nn.conv2d(x, w, padding=1))))
    c = emit(op.add(emit(op.nn.conv2d(a, w, padding=1)), b))
    return op.nn.relu(emit(op.add(c, a)))


def gates(emit, _, x, w):
    a = emit(op.matmul(x, w))
    gate = emit(op.sigmoid(emit(op.matmul(a, w))))
    mixed = emit(op.multiply(emit(op.matmul(emit(op.add(a, gate)), w)), gate))
    return op.add(emit(op.matmul(mixed, w)), a)


def calls_of_model(graph):
    """The calls in place of what ``weft.compile`` makes of a graph."""
    with weft.target.Target("llvm -num-cores=2"):
        return in_place(relax.get_pipeline("weft")(graph))


@pytest.mark.parametrize(("channels", "size"), [(1, 1), (7, 7), (15, 7)])
@pytest.mark.parametrize(("block", "count"), [(a_residual_block, 1), (what_its_own_windows_see, 0)])
def test_a_block_is_written_over_what_it_adds(block, count, channels, size):
    shapes = [(1, channels, size, size), (channels, channels, 3, 3), (1, channels, 1, 1)]
    x, w, b = [array / 4 for array in arrays_of(*shapes)]
    bound = relax.transform.BindParams("main", {"x1": w, "x2": b})(graph_of(block, *shapes))
    assert len(calls_of_model(bound)) == count
    found = weft.compile(bound, cache=False)(x)
    np.testing.assert_allclose(found, run(bound, "main", x), rtol=1e-4, atol=1e-4)


def test_gates_of_any_number_of_rows():
    [w] = arrays_of((17, 17))
    graph = graph_of(gates, (T.int64(), 17), (17, 17))
    bound = relax.transform.BindParams("main", {"x1": w})(graph)
    assert len(calls_of_model(bound)) >= 2
    model = weft.compile(bound, cache=False)
    for rows in (0, 1, 7, 17):
        [x] = arrays_of((rows, 17))
        np.testing.assert_allclose(model(x), run(bound, "main", x), rtol=1e-4, atol=1e-4)


def test_every_pass_is_verified_on_calls_in_place():
    def body(emit, _, x, w):
        a = emit(op.matmul(x, w))
        return op.add(emit(op.matmul(emit(op.matmul(a, w)), w)), a)

    graph = graph_of(body, (3, 3), (3, 3))
    assert [at for _, at in calls_of_model(graph)] == [2]
    x, w = arrays_of((3, 3), (3, 3))
    found = weft.compile(graph, verify=True, cache=False)(x, w)
    np.testing.assert_allclose(found, run(graph, "main", x, w), rtol=1e-4, atol=1e-4)


def test_working_memory_shrinks():
    """Three tensors are alive where the last product is added to the first: with a copy four."""
    shapes = [(64, 64), (64, 64)]
    x, w = arrays_of(*shapes)
    bound = relax.transform.BindParams("main", {"x1": w})(graph_of(gates, *shapes))
    steps = relax.get_pipeline("weft").passes
    without = [step for step in steps if step.info.name != "ReuseDyingArguments"]
    plain, less = [
        weft.compile(
            bound, target="llvm -num-cores=1", relax_pipeline=pipeline, cache=False
        ).memory(x)
        for pipeline in (weft.ir.transform.Sequential(without), "weft")
    ]
    assert less.arena < plain.arena
