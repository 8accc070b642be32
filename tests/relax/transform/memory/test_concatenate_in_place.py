"""ConcatenateInPlace: kernels write what is concatenated where the result has it."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.functor import collect
from weft.ir.transform import Sequential
from weft.relax import op
from weft.relax.analysis import well_formed
from weft.relax.analysis.concatenation import concatenated_axis, into_part
from weft.relax.expr import Call, Function
from weft.relax.reference import run
from weft.relax.transform import DeadCodeElimination, LegalizeOps
from weft.relax.transform.memory.concatenate_in_place import ConcatenateInPlace
from weft.script import tir as T

IN_PLACE = Sequential([ConcatenateInPlace(), DeadCodeElimination()])


def module_of(body, *shapes):
    """``body(builder, *tensors)`` in a dataflow block, as calls of PrimFuncs."""
    tensors = [
        relax.Var(f"x{i}", relax.TensorStructInfo(shape, "float32"))
        for i, shape in enumerate(shapes)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", tensors):
        with builder.dataflow():
            out = builder.emit_output(body(builder, *tensors))
        builder.emit_func_output(out)
    return LegalizeOps()(builder.get())


def arrays_of(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def calls_of(mod):
    """The names of the PrimFuncs that are called, and how many of them write in place."""
    calls = collect(mod["main"], Call)
    named = [call.args[0].name_hint for call in calls if call.op.name.startswith("relax.call_tir")]
    return named, [call.op.name for call in calls].count("relax.call_tir_inplace")


def along(axis):
    def body(builder, *tensors):
        return op.concat([builder.emit(op.negative(one)) for one in tensors], axis)

    return body


@pytest.mark.parametrize(
    ("axis", "shapes"),
    [
        (1, [(1, 4, 5, 16), (1, 2, 5, 16)]),
        (0, [(7, 17), (1, 17)]),
        (-1, [(3, 7), (3, 1), (3, 17)]),
        (1, [(2, 1, 3), (2, 16, 3), (2, 7, 3)]),
        (0, [(1,), (1,)]),
    ],
)
def test_kernels_write_their_part(axis, shapes):
    before = module_of(along(axis), *shapes)
    arrays = arrays_of(*shapes)
    after = IN_PLACE(before)
    assert well_formed(after)
    names, in_place = calls_of(after)
    assert not any("concat" in name for name in names)
    assert in_place == len(shapes) - 1
    expected = -np.concatenate(arrays, axis)
    np.testing.assert_array_equal(run(after, "main", *arrays), expected)
    machine = relax.VirtualMachine(weft.relax.build(after), weft.cpu())
    np.testing.assert_array_equal(machine["main"](*map(weft.nd.array, arrays)).numpy(), expected)


SHAPE = (2, 3)


def of_a_parameter(builder, x, y):
    return op.concat([builder.emit(op.negative(x)), y], 0)


def of_one_tensor_twice(builder, x, _):
    same = builder.emit(op.negative(x))
    return op.concat([same, same], 0)


def of_what_is_read_again(builder, x, y):
    first = builder.emit(op.negative(x))
    whole = builder.emit(op.concat([first, builder.emit(op.negative(y))], 1))
    return op.add(whole, builder.emit(op.concat([first, y], 1)))


def of_what_is_computed_too(builder, x, y):
    two = builder.emit(op.split(x, [1], 1))
    return op.concat([builder.emit(op.negative(y)), builder.emit(two[0])], 1)


@pytest.mark.parametrize(
    "body", [of_a_parameter, of_one_tensor_twice, of_what_is_read_again, of_what_is_computed_too]
)
def test_others_are_copied(body):
    before = module_of(body, SHAPE, SHAPE)
    assert ConcatenateInPlace()(before) is before


def test_symbolic_sizes_along_the_axis_are_copied():
    before = module_of(along(0), (T.int64(), 3), SHAPE)
    assert ConcatenateInPlace()(before) is before


@pytest.mark.parametrize("size", [0, 1, 3, 7, 16, 17])
@pytest.mark.parametrize(("axis", "parts"), [(1, (2, 1, 3)), (0, (1, 4)), (2, (5, 17))])
def test_other_axes_may_be_symbolic(axis, parts, size):
    """All kernels of the graph have the same symbols in their shapes."""
    high, wide = T.int64(), T.int64()
    shapes = [[high, wide, high] for _ in parts]
    for shape, part in zip(shapes, parts, strict=True):
        shape[axis] = part
    before = module_of(along(axis), *shapes)
    after = IN_PLACE(before)
    assert well_formed(after)
    names, in_place = calls_of(after)
    assert not any("concat" in name for name in names)
    assert in_place == len(parts) - 1
    numbers = {high: size, wide: 3}
    arrays = arrays_of(*[[numbers.get(extent, extent) for extent in shape] for shape in shapes])
    expected = -np.concatenate(arrays, axis)
    np.testing.assert_array_equal(run(after, "main", *arrays), expected)
    machine = relax.VirtualMachine(weft.relax.build(after), weft.cpu())
    np.testing.assert_array_equal(machine["main"](*map(weft.nd.array, arrays)).numpy(), expected)


def test_axes_that_only_happen_to_be_equal_are_copied():
    before = module_of(along(0), (2, T.int64()), (2, T.int64()))
    assert ConcatenateInPlace()(before) is before


def test_of_two_that_nest_the_inner_one_is_written_in_place():
    def body(builder, x, y):
        inner = builder.emit(along(0)(builder, x, y))
        return op.concat([inner, builder.emit(op.exp(y))], 0)

    before = module_of(body, SHAPE, SHAPE)
    after = IN_PLACE(before)
    assert well_formed(after)
    names, in_place = calls_of(after)
    assert in_place == 1
    assert sum("concat" in name for name in names) == 1
    x, y = arrays_of(SHAPE, SHAPE)
    expected = np.concatenate([-x, -y, np.exp(y)])
    np.testing.assert_allclose(run(after, "main", x, y), expected, rtol=1e-6)


def test_parts_are_written_in_the_order_of_the_program():
    def body(builder, x, y):
        last = builder.emit(op.negative(y))
        first = builder.emit(op.negative(x))
        return op.concat([first, last], 1)

    x, y = arrays_of(SHAPE, (2, 4))
    after = IN_PLACE(module_of(body, SHAPE, (2, 4)))
    assert calls_of(after)[1] == 1
    np.testing.assert_array_equal(run(after, "main", x, y), -np.concatenate([x, y], 1))


def test_convolutions_of_a_network_write_in_place():
    """As in SqueezeNet's fire modules, in blocks of channels, scheduled, two images."""

    def body(builder, x, w, v, u):
        parts = [
            builder.emit(op.nn.relu(builder.emit(op.nn.conv2d(x, weight, padding=pad))))
            for weight, pad in ((w, 0), (v, 1))
        ]
        return op.nn.conv2d(builder.emit(op.concat(parts, 1)), u)

    shapes = [(2, 16, 7, 7), (32, 16, 1, 1), (16, 16, 3, 3), (16, 48, 1, 1)]
    infos = [relax.TensorStructInfo(shape, "float32") for shape in shapes]
    tensors = [relax.Var(name, info) for name, info in zip("xwvu", infos, strict=True)]
    builder = relax.BlockBuilder()
    with builder.function("main", tensors, {"num_input": 1}):
        with builder.dataflow():
            out = builder.emit_output(body(builder, *tensors))
        builder.emit_func_output(out)
    arrays = arrays_of(*shapes)
    weights = dict(zip("wvu", arrays[1:], strict=True))
    bound = relax.transform.BindParams("main", weights)(builder.get())
    with weft.target.Target("llvm -num-cores=2"):
        made = relax.get_pipeline("weft")(bound)
    names, in_place = calls_of(made)
    assert in_place == 1
    assert not any("concat" in name for name in names)
    found = relax.VirtualMachine(weft.relax.build(made), weft.cpu())["main"](arrays[0]).numpy()
    expected = run(builder.get(), "main", *arrays)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@T.prim_func
def swapped(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"),
            C: T.Buffer((4, 3), "float32")):  # fmt: skip
    for i, j in T.grid(4, 3):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = T.if_then_else(v < 2, B[v, w], A[v - 2, w])


@T.prim_func
def doubled(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2, 3), "float32"),
            C: T.Buffer((4, 3), "float32")):  # fmt: skip
    for i, j in T.grid(4, 3):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = T.if_then_else(v < 2, A[v, w], B[v - 2, w] * T.float32(2))


@T.prim_func
def addressed(A: T.Buffer((2, 3), "float32"), C: T.Buffer((2, 3), "float32")):
    for i in range(2):
        with T.block("C"):
            v = T.axis.spatial(2, i)
            T.reads(A[v, 0:3])
            T.writes(C[v, 0:3])
            T.evaluate(T.call_extern("int32", "fill", C.data, A.data, v))


@pytest.mark.parametrize("func", [swapped, doubled, addressed])
def test_other_functions_do_not_concatenate(func):
    assert concatenated_axis(func) is None


def test_who_takes_an_address_writes_no_part():
    assert into_part(addressed, 0, 0, 4) is None


def test_a_scheduled_concatenation_is_one():
    mod = module_of(along(1), (1, 4, 5), (1, 4, 5))
    kernels = {
        var.name_hint: func for var, func in mod.functions.items() if not isinstance(func, Function)
    }
    [name] = [name for name in kernels if "concat" in name]
    sch = weft.tir.Schedule(kernels[name])
    fused = sch.fuse(*sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0]))
    sch.vectorize(sch.split(fused, [None, 8])[1])
    assert concatenated_axis(sch.mod["main"]) == 1
