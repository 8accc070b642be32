"""op_pattern: the pattern of kernels, and that it holds of what the kernel computes."""

import numpy as np
import pytest

from weft import te, tir, topi
from weft.relax.analysis.op_pattern import OpPatternKind as Kind
from weft.relax.analysis.op_pattern import op_pattern
from weft.script import tir as T
from weft.tir import interp


def x(*shape, name="x", dtype="float32"):
    return te.placeholder(shape, dtype, name)


def kernel(inputs, *outputs):
    return te.create_prim_func([*inputs, *outputs])


A, B, ROW, COLUMN = x(3, 4), x(3, 4, name="y"), x(4, name="row"), x(3, 1, name="column")
IMAGE, FILTER = x(1, 2, 5, 5), x(3, 2, 3, 3, name="w")
WEIGHT = x(4, 2, name="weight")
INDEX = x(2, name="index", dtype="int32")
CASES = {
    "exp": ([A], topi.exp(A), Kind.ELEMWISE),
    "add": ([A, B], topi.add(A, B), Kind.ELEMWISE),
    "bias": ([A, ROW], topi.add(A, ROW), Kind.ELEMWISE),
    "unit axis": ([A, COLUMN], topi.add(A, COLUMN), Kind.ELEMWISE),
    "full": ([], topi.full((3, 4), "float32", 1.0), Kind.ELEMWISE),
    "broadcast": ([ROW], topi.broadcast_to(ROW, (3, 4)), Kind.BROADCAST),
    "outer": ([COLUMN, ROW], topi.add(COLUMN, ROW), Kind.BROADCAST),
    "transpose": ([A], topi.transpose(A), Kind.INJECTIVE),
    "reshape": ([A], topi.reshape(A, (4, 3)), Kind.INJECTIVE),
    "concatenate": ([A, B], topi.concatenate([A, B]), Kind.INJECTIVE),
    "first rows": ([A], topi.strided_slice(A, [0, 0], [2, 4]), Kind.INJECTIVE),
    "flip": ([A], topi.flip(A), Kind.INJECTIVE),
    "take": ([A, INDEX], topi.take(A, INDEX, 0), Kind.INJECTIVE),
    "sum": ([A], topi.sum(A, 1), Kind.COMM_REDUCE),
    "sum of all": ([A], topi.sum(A), Kind.COMM_REDUCE),
    "maximum, kept": ([A], topi.max(A, 0, keepdims=True), Kind.COMM_REDUCE),
    "matmul": ([A, WEIGHT], topi.matmul(A, WEIGHT), Kind.OUT_ELEMWISE_FUSABLE),
    "softmax": ([A], topi.nn.softmax(A), Kind.OUT_ELEMWISE_FUSABLE),
    "conv2d": (
        [IMAGE, FILTER],
        topi.nn.conv2d(IMAGE, FILTER, 1, 0, 1),
        Kind.OUT_ELEMWISE_FUSABLE,
    ),
    "pool": (
        [IMAGE],
        topi.nn.pool2d(IMAGE, (2, 2), (1, 1), (1, 1), (0, 0, 0, 0), "max"),
        Kind.OUT_ELEMWISE_FUSABLE,
    ),
    "cumsum": ([A], topi.cumsum(A, 1), Kind.OPAQUE),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_pattern_of(name):
    inputs, output, expected = CASES[name]
    assert op_pattern(kernel(inputs, output)) is expected


def influence(func, inputs, output_shape):
    """For each input, a bool array (output index..., input index...): who changes whom."""
    rng = np.random.default_rng(3)
    values = [
        rng.integers(0, 2, [int(d) for d in t.shape]).astype(str(t.dtype))
        if str(t.dtype).startswith("int")
        else rng.normal(size=[int(d) for d in t.shape]).astype(str(t.dtype))
        for t in inputs
    ]

    def run(given):
        out = np.zeros(output_shape, "float32")
        interp.run(func, *given, out)
        return out

    base = run([value.copy() for value in values])
    found = []
    for position, value in enumerate(values):
        table = np.zeros((*output_shape, *value.shape), bool)
        if value.dtype.kind == "f":
            for index in np.ndindex(*value.shape):
                given = [item.copy() for item in values]
                given[position][index] += 3.7
                table[(..., *index)] = run(given) != base
        found.append(table)
    return found


@pytest.mark.parametrize("name", sorted(set(CASES) - {"cumsum"}))
def test_a_pattern_holds_of_the_program(name):
    """What a pattern promises is checked by changing one input element at a time."""
    inputs, output, _ = CASES[name]
    shape = tuple(int(dim) for dim in output.shape)
    func = kernel(inputs, output)
    kind = op_pattern(func)
    for tensor, table in zip(inputs, influence(func, inputs, shape), strict=True):
        own = tuple(int(dim) for dim in tensor.shape)
        sources = table.reshape(*shape, -1).sum(-1)
        if kind <= Kind.INJECTIVE:
            assert sources.max(initial=0) <= 1, "one element of each input for one of the result"
        if kind is Kind.ELEMWISE and own == shape:
            for out in np.ndindex(*shape):
                assert {tuple(i) for i in np.argwhere(table[out])} <= {out}
        if kind is Kind.BROADCAST:
            readers = table.reshape(int(np.prod(shape)), -1).sum(0)
            assert (readers > 0).all()


def test_kernels_that_are_no_function_of_an_index():
    @T.prim_func
    def scan(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] + b[T.max(vi - 1, 0)]

    @T.prim_func
    def half(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(2):
            with T.block("b"):
                vi = T.axis.spatial(2, i)
                b[vi] = a[vi]

    @T.prim_func
    def half_of_the_points(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(2):
            with T.block("b"):
                vi = T.axis.spatial(4, i * 2)
                b[vi] = a[vi]

    @T.prim_func
    def guarded(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                T.where(i < 3)
                b[vi] = a[vi]

    @T.prim_func
    def twice(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi]
        for i in range(4):
            with T.block("c"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[3 - vi]

    @T.prim_func
    def scatter(a: T.Buffer((4,), "int32"), b: T.Buffer((4,), "int32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[a[vi]] = vi

    @T.prim_func
    def outside(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = T.call_extern("float32", "something", a[vi])

    for func in (scan, half, half_of_the_points, guarded, twice, scatter, outside):
        assert op_pattern(func) is Kind.OPAQUE, func


def test_scheduled_kernels_keep_their_pattern():
    schedule = tir.Schedule(kernel([A, B], topi.add(A, B)))
    loops = schedule.get_loops(schedule.get_block("T_add"))
    schedule.split(schedule.fuse(*loops), [None, 4])
    assert op_pattern(schedule.mod["main"]) is Kind.ELEMWISE
    schedule = tir.Schedule(kernel([A, B], topi.add(A, B)))
    loops = schedule.get_loops(schedule.get_block("T_add"))
    schedule.split(schedule.fuse(*loops), [None, 5])  # 12 points in 15: guarded
    assert op_pattern(schedule.mod["main"]) is Kind.ELEMWISE


def test_symbolic_shapes():
    n = te.var("n", "int64")
    a, b = x(n, 4), x(n, 4, name="b")
    assert op_pattern(kernel([a, b], topi.add(a, b))) is Kind.ELEMWISE
    assert op_pattern(kernel([a], topi.sum(a, 1))) is Kind.COMM_REDUCE
    assert op_pattern(kernel([a], topi.transpose(a))) is Kind.INJECTIVE


def test_the_rounding_of_a_wider_accumulator_belongs_to_the_reduction():
    """A sum stays a sum, so that what comes before it is still fused into it."""
    wide = topi.sum(topi.cast(A, "float64"), 1)
    assert op_pattern(kernel([A], topi.cast(wide, "float32"))) is Kind.COMM_REDUCE
    assert op_pattern(kernel([A], topi.divide(topi.sum(A, 1), 4.0))) is Kind.OUT_ELEMWISE_FUSABLE
