"""The bug classes that graph fuzzers found in TVM, ONNX Runtime and Inductor, one test for each.

Every case runs in the Relax interpreter and as native code, in each of the ``WAYS``: at both
optimisation levels, with fused kernels, with calls in place. It is compared with what numpy gives.
Layout rewriting has its own tests, in tests/relax/transform/test_convert_layout.py.
"""

import itertools

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.transform import PassContext
from weft.relax import BlockBuilder, TensorStructInfo, Var, op, transform
from weft.relax.reference.interpreter import run
from weft.runtime.faults import DivisionFault
from weft.support.errors import RuntimeFault
from weft.tir import Schedule

pytestmark = pytest.mark.sampled(2)

NAN, INF = float("nan"), float("inf")
IN_PLACE = transform.DataflowUseInplaceCalls()
WAYS = {
    "opt_level 0": (0, "default", lambda mod: mod),
    "opt_level 3": (3, "default", lambda mod: mod),
    "fused": (3, "weft", lambda mod: mod),
    "in place": (3, "default", IN_PLACE),
    "bytecode": (3, "default_build", lambda mod: mod),
}
"""The opt_level, the pipeline, and what is done to the module before."""


def graph(emit, arrays):
    """A module whose ``main`` returns what ``emit`` makes of its parameters."""
    params = [Var(f"x{i}", TensorStructInfo(a.shape, a.dtype.name)) for i, a in enumerate(arrays)]
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(emit(builder, *params))
        builder.emit_func_output(result)
    return builder.get()


def compiled(mod, arrays, way):
    """The result of compiled code."""
    level, pipeline, before = WAYS[way]
    with PassContext(opt_level=level):
        executable = relax.build(before(mod), "llvm", pipeline=pipeline)
    machine = relax.VirtualMachine(executable, weft.cpu())
    return machine["main"](*[weft.nd.array(a) for a in arrays]).numpy()


def check(emit, arrays, expected, tolerance=0.0):
    """Every way to run ``emit`` gives ``expected``: the dtype, the shape, the values."""
    arrays = [np.asarray(a) for a in arrays]
    expected = np.asarray(expected)
    mod = graph(emit, arrays)
    kept = [a.copy() for a in arrays]
    for name in ("interpreter", *WAYS):
        made = run(mod, "main", *arrays) if name == "interpreter" else compiled(mod, arrays, name)
        found = np.asarray(made)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_allclose(
            found, expected, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name
        )
    np.testing.assert_equal(arrays, kept)  # inputs are never written


def call(function, *args, **options):
    """One operator as an emitter."""
    return lambda builder, *xs: function(*xs, *args, **options)


def f32(*items):
    return np.array(items, "float32")


@pytest.mark.parametrize("data", ["int32", "int64"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_int32_and_int64_mix(data, index):
    x, i = np.arange(12, dtype=data).reshape(3, 4), np.array([2, 0], index)
    check(call(op.take, axis=0), [x, i], x[[2, 0]])
    far = np.array([2**31 - 1, 5], data)
    with np.errstate(over="ignore"):
        check(lambda b, a: op.add(a, a), [far], far + far)
    check(lambda b, a: op.add(op.astype(a, "int64"), op.astype(a, "int64")), [far],
          far.astype("int64") * 2)  # fmt: skip


@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1, 1, 1)])
def test_reductions_of_small_shapes(shape):
    x = np.ones(shape, "float32") / 2
    check(call(op.sum), [x], x.sum())
    check(call(op.prod), [x], x.prod())
    for axis in range(len(shape)):
        check(call(op.sum, axis=axis, keepdims=True), [x], x.sum(axis=axis, keepdims=True))
        if shape[axis]:
            check(call(op.max, axis=axis), [x], x.max(axis=axis))


@pytest.mark.parametrize("shapes", [
    ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((1, 1), (1, 1)), ((0,), (0,)),
    ((1,), (1, 4)), ((0, 2, 3), (3, 2)), ((1, 2, 3), (4, 3, 1)),
])  # fmt: skip
def test_matmul_of_small_shapes(shapes):
    x, y = (np.ones(shape, "float32") for shape in shapes)
    check(call(op.matmul), [x, y], np.matmul(x, y))


@pytest.mark.parametrize("shape", [(1,), (0,), (2, 0), (0, 2), (1, 1)])
def test_softmax_and_concat_of_small_shapes(shape):
    x = np.ones(shape, "float32")
    expected = x / max(shape[-1], 1)
    check(call(op.nn.softmax, -1), [x], expected, 1e-6)
    check(lambda b, a, c: op.concat((a, c), 0), [x, x + 1], np.concatenate((x, x + 1)))


@pytest.mark.parametrize("shape", [(1, 2, 0), (0, 2, 3), (1, 0, 3)])
def test_adaptive_average_of_nothing_is_nan_as_the_mean(shape):
    x = np.ones(shape, "float32")
    expected = np.full((*shape[:2], 1), 1 if shape[2] else NAN, "float32")
    check(call(op.mean, axis=2, keepdims=True), [x], expected)
    check(call(op.nn.adaptive_avg_pool1d, [1]), [x], expected)


def test_division_and_modulo_of_negative_numbers():
    x, y = np.array([7, -7, 7, -7, 0], "int32"), np.array([2, 2, -2, -2, -3], "int32")
    check(call(op.floor_divide), [x, y], x // y)
    check(call(op.floor_mod), [x, y], x % y)
    check(call(op.mod), [x, y], np.fmod(x, y))
    check(call(op.divide), [x, y], np.trunc(x / y).astype("int32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("name", ["divide", "floor_divide", "floor_mod", "mod"])
def test_integers_by_zero_are_an_error_and_the_least_by_minus_one_wraps(name, dtype):
    function, least = getattr(op, name), np.iinfo(dtype).min
    x, zero = np.array([7, 0], dtype), np.array([1, 0], dtype)
    mod = graph(call(function), [x, zero])
    with pytest.raises(RuntimeFault, match="division by zero"):
        run(mod, "main", x, zero)
    for way in ("opt_level 0", "opt_level 3"):
        with pytest.raises(DivisionFault, match=f"{name}: integer division by zero"):
            compiled(mod, [x, zero], way)
    if least:
        given = [np.array([least, 5], dtype), np.array([-1, 1], dtype)]
        check(call(function), given, np.array([0, 0] if "mod" in name else [least, 5], dtype))


def test_constants_by_zero_are_an_error_when_the_function_runs():
    """No pass may divide them, nor drop the error."""
    x = np.array([1, 2], "int32")
    quotient = op.floor_divide(relax.const(x), relax.const(np.zeros(2, "int32")))
    mod = graph(lambda b, a: op.add(a, b.emit(quotient)), [x])
    for way in WAYS:
        with pytest.raises(DivisionFault, match="integer division by zero"):
            compiled(mod, [x], way)


def test_floats_by_zero():
    x = f32(1, -1, 0, INF, NAN)
    with np.errstate(all="ignore"):
        check(lambda b, a, z: op.divide(a, z), [x, np.zeros(5, "float32")], x / np.float32(0))


def test_casts_that_narrow():
    x = np.array([300, -1, 128, -129], "int32")
    check(call(op.astype, "int8"), [x], x.astype("int8"))
    check(call(op.astype, "uint8"), [x], x.astype("uint8"))
    check(call(op.astype, "bool"), [f32(0.5, 0, -0.0, NAN, 2)], [True, False, False, True, True])
    check(call(op.astype, "int32"), [f32(-1.9, 1.9, -0.5)], np.array([-1, 1, 0], "int32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_casts_of_nan_and_out_of_range_agree(dtype):
    """No value is named: what counts is that constants fold to what native code computes."""
    x = f32(NAN, INF, -INF, 1e30, -1e30)
    mod = graph(call(op.astype, dtype), [x])
    expected = np.asarray(run(mod, "main", x))
    check(call(op.astype, dtype), [x], expected)
    check(lambda b, a: op.add(op.astype(relax.const(x), dtype), op.astype(a, dtype)),
          [np.zeros(5, "float32")], expected)  # fmt: skip


def test_fusion_of_operators_that_must_not_share_a_loop():
    """A softmax, a sum after it, a transposed use of the same value and a scatter."""
    x = np.linspace(-1, 1, 16, dtype="float32").reshape(4, 4)

    def emit(b, a):
        e = b.emit(op.exp(a))
        s = b.emit(op.sum(e, axis=1, keepdims=True))
        t = b.emit(op.cumsum(op.permute_dims(e), 0))
        return op.add(op.divide(e, s), op.add(t, op.sort(e, -1, True)))

    e = np.exp(x)
    expected = e / e.sum(1, keepdims=True) + np.cumsum(e.T, 0) + -np.sort(-e, -1)
    check(emit, [x], expected, 1e-5)


def test_kernels_that_look_element_wise_and_are_not():
    """Square shapes: only the indices tell a transposition, a reversal, a shift from a copy."""
    x = np.arange(16, dtype="float32").reshape(4, 4) / 8

    def emit(b, a):
        e = b.emit(op.exp(a))
        t = b.emit(op.tanh(op.permute_dims(e)))
        f = b.emit(op.flip(op.negative(t), 0))
        s = b.emit(op.concat((op.strided_slice(f, [0], [1], [4]), f), 0))
        return op.multiply(op.strided_slice(s, [0], [0], [4]), op.cumsum(e, 1))

    e = np.exp(x)
    f = -np.tanh(e.T)[::-1]
    check(emit, [x], np.concatenate((f[1:], f))[:4] * np.cumsum(e, 1), 1e-5)


def test_a_reduction_between_element_wise_operators_is_not_recomputed_wrongly():
    x = np.linspace(-2, 2, 24, dtype="float32").reshape(2, 3, 4)

    def emit(b, a):
        m = b.emit(op.max(op.abs(a), axis=[1], keepdims=True))
        n = b.emit(op.sum(op.multiply(a, m), axis=[2]))
        return op.add(op.expand_dims(n, 2), op.divide(a, m))

    m = np.abs(x).max(1, keepdims=True)
    check(emit, [x], (x * m).sum(2)[..., None] + x / m, 1e-5)


def test_calls_in_place_keep_what_is_read_later():
    x = f32(1, 2, 3, 4)

    def emit(b, a):
        y = b.emit(op.add(a, a))
        z = b.emit(op.reshape(y, (2, 2)))  # a view of what the next call could overwrite
        w = b.emit(op.negative(y))
        return op.add(op.reshape(z, (4,)), op.add(op.exp(w), op.flip(y, 0)))

    y = x + x
    check(emit, [x], y + np.exp(-y) + y[::-1], 1e-6)


def test_calls_in_place_keep_parameters_constants_and_fields_of_tuples():
    x, c = f32(1, 2, 3, 4), f32(5, 6, 7, 8)

    def emit(b, a):
        k = relax.const(c)
        p = b.emit(op.add(a, k))  # neither may be written
        parts = b.emit(op.split(p, 2))
        left = b.emit(op.negative(parts[0]))
        pair = b.emit(relax.Tuple([left, parts[1]]))
        last = b.emit(op.exp(left))  # the pair still holds what it reads
        return op.concat((op.multiply(pair[0], pair[1]), last, a, k), 0)

    p = x + c
    left = -p[:2]
    check(emit, [x], np.concatenate((left * p[2:], np.exp(left), x, c)), 1e-6)


def test_a_call_in_place_that_reads_its_target_twice():
    x = np.arange(9, dtype="float32").reshape(3, 3)

    def emit(b, a):
        y = b.emit(op.add(a, a))
        return op.add(y, y)

    check(emit, [x], 4 * x)
    check(lambda b, a: op.add(b.emit(op.negative(a)), op.sum(a, axis=[0])), [x], -x + x.sum(0))


PASSES = ("FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination", "CanonicalizeBindings",
          "DataflowUseInplaceCalls")  # fmt: skip


def test_passes_in_any_order():
    x = f32(1, 2, 3)

    def emit(b, a):
        c = b.emit(op.multiply(relax.const(f32(2, 2, 2)), relax.const(f32(3, 3, 3))))
        p, q = b.emit(op.add(a, c)), b.emit(op.add(a, c))
        r = b.emit(op.negative(b.emit(op.exp(q))))
        b.emit(op.tanh(r))
        return op.subtract(op.multiply(p, r), op.add(c, q))

    mod = graph(emit, [x])
    expected = (x + 6) * -np.exp(x + 6) - (x + 12)
    for order in itertools.permutations(PASSES):
        made = mod
        for name in order:
            made = getattr(transform, name)()(made)
        np.testing.assert_allclose(run(made, "main", x), expected, rtol=1e-5, err_msg=f"{order}")


def test_what_a_call_in_place_writes_becomes_no_constant():
    x = f32(1, 2, 3)
    mod = graph(lambda b, a: op.add(b.emit(op.exp(relax.const(x))), a), [x])
    made = transform.FoldConstant()(IN_PLACE(mod))
    assert "inplace" in made.script()
    machine = relax.VirtualMachine(relax.build(made, "llvm"), weft.cpu())
    for _ in range(2):  # the second call finds what the first one left
        found = machine["main"](weft.nd.array(x)).numpy()
        np.testing.assert_allclose(found, np.exp(x) + x, rtol=1e-5)
    (block,) = made["main"].body.blocks
    (target, *_) = block.bindings[-1].value.args[1].fields
    assert not isinstance(target, relax.Constant)


def test_order_of_passes_on_shared_and_constant_values():
    """Constants to fold, equal calls, an unused call, a call whose value is used twice."""
    x = f32(1, 2, 3)

    def emit(b, a):
        c = b.emit(op.multiply(relax.const(f32(2, 2, 2)), relax.const(f32(3, 3, 3))))
        p, q = b.emit(op.add(a, c)), b.emit(op.add(a, c))
        b.emit(op.tanh(q))
        return op.subtract(op.multiply(p, q), p)

    check(emit, [x], (x + 6) ** 2 - (x + 6))


@pytest.mark.parametrize("size", [1, 5, 17, 33])
def test_tiles_that_do_not_divide(size):
    x = np.arange(size * (size + 2), dtype="float32").reshape(size, size + 2) % 7
    check(lambda b, a: op.nn.relu(op.matmul(a, op.permute_dims(a))), [x], x @ x.T)


@pytest.mark.parametrize("factor", [2, 5, 16, 64])
@pytest.mark.parametrize("size", [1, 7, 17])
def test_schedules_whose_tiles_do_not_divide(size, factor):
    """The kernel of a graph, split by factors with a tail, vectorised and unrolled."""
    x = np.arange(size * 3, dtype="float32").reshape(size, 3) % 5
    lowered = transform.LegalizeOps()(graph(call(op.matmul), [x, x.T.copy()]))
    schedule = Schedule(lowered)
    schedule.work_on("matmul")
    block = schedule.get_block("NT_matmul" if "NT_matmul" in lowered.script() else "matmul")
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, factor])
    j0, j1 = schedule.split(j, [None, factor])
    k0, k1 = schedule.split(k, [None, 2])
    schedule.reorder(i0, j0, k0, i1, k1, j1)
    schedule.vectorize(j1)
    schedule.unroll(k1)
    for way in ("opt_level 0", "opt_level 3", "bytecode"):
        np.testing.assert_array_equal(compiled(schedule.mod, [x, x.T.copy()], way), x @ x.T)


@pytest.mark.parametrize(("mode", "name"), [
    ("constant", "constant"), ("edge", "edge"), ("reflect", "reflect"), ("circular", "wrap"),
])  # fmt: skip
def test_pad_modes(mode, name):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    check(call(op.nn.pad, [1, 2, 2, 1], mode), [x], np.pad(x, ((1, 2), (2, 1)), name))
    check(call(op.nn.pad, [0, 0, 3, 0], mode), [x], np.pad(x, ((0, 0), (3, 0)), name))
    y = np.arange(8).reshape(2, 2, 2)
    for dtype in ("int8", "uint8", "int64", "float16"):
        widths = [1, 0, 0, 1, 1, 1]
        check(call(op.nn.pad, widths, mode), [y.astype(dtype)],
              np.pad(y.astype(dtype), ((1, 0), (0, 1), (1, 1)), name))  # fmt: skip


def test_pads_of_one_element_and_of_nothing():
    one, none = np.full((1, 1), 3, "float32"), np.zeros((0, 2), "float32")
    check(call(op.nn.pad, [2, 1, 0, 1], "edge"), [one], np.full((4, 2), 3, "float32"))
    check(call(op.nn.pad, [1, 1, 0, 1], "constant", 7.0), [none], np.full((2, 3), 7, "float32"))
    check(lambda b, a: op.sum(op.nn.pad(a, [1, 1, 0, 1], "constant", INF)), [none], np.float32(INF))


def test_reductions_of_uint8_and_bool():
    x = np.array([200, 100, 255], "uint8")
    check(call(op.sum), [x], x.sum(dtype="uint8"))
    check(call(op.max), [x], x.max())
    check(call(op.min), [x], x.min())
    check(call(op.argmax), [x], np.int64(2))
    y = np.array([[200, 3], [100, 7], [255, 1]], "uint8")
    check(call(op.sum, axis=[0]), [y], y.sum(0, dtype="uint8"))
    check(call(op.prod, axis=[0]), [y], y.prod(0, dtype="uint8"))
    check(call(op.cumsum, 0), [y], y.cumsum(0, dtype="uint8"))
    check(call(op.max, axis=[1]), [y], y.max(1))
    check(call(op.argmin, 0), [y], y.argmin(0))
    check(call(op.sort, 0), [y], np.sort(y, 0))
    check(call(op.max, axis=[0]), [np.zeros((1, 2), "uint8")], np.zeros(2, "uint8"))
    flags = np.array([[True, False], [False, False]])
    check(lambda b, a: op.sum(op.astype(a, "int32"), axis=1), [flags], np.array([1, 0], "int32"))


def test_float16_sums_and_products():
    x = np.full((1, 256), 0.25, "float16")
    check(call(op.sum), [x], np.float16(64))
    check(lambda b, a: op.matmul(a, op.permute_dims(a)), [x], np.array([[16]], "float16"))
    long = np.full((1, 4096), 0.25, "float16")  # a float16 sum of these stays at 512
    check(call(op.sum), [long], np.float16(1024))
    check(lambda b, a: op.matmul(a, op.permute_dims(a)), [long], np.array([[256]], "float16"))
    check(lambda b, a: op.linear(a, a), [long], np.array([[256]], "float16"))
    check(lambda b, a: op.einsum((a, a), "ij,kj->ik"), [long], np.array([[256]], "float16"))
    check(call(op.mean), [np.full(4, 60000, "float16")], np.float16(60000))
    check(call(op.variance), [np.array([200, -200] * 4, "float16")], np.float16(40000))
    check(call(op.std), [np.array([200, -200] * 4, "float16")], np.float16(200))
    wide = np.full((1, 1, 64, 64), 100, "float16")
    check(call(op.nn.avg_pool2d, 64), [wide], np.full((1, 1, 1, 1), 100, "float16"))
    check(call(op.nn.softmax, -1), [x], np.full((1, 256), 1 / 256, "float16"), 1e-4)


def test_nan_and_inf():
    x = f32(NAN, 1, INF, -INF)
    check(call(op.isnan), [x], np.isnan(x))
    check(call(op.isinf), [x], np.isinf(x))
    check(call(op.isfinite), [x], np.isfinite(x))
    check(lambda b, a: op.equal(a, a), [x], x == x)
    check(lambda b, a: op.multiply(a, relax.const(0.0, "float32")), [x], f32(NAN, 0, NAN, NAN))
    check(lambda b, a: op.subtract(a, a), [x], f32(NAN, 0, NAN, NAN))
    check(call(op.sum), [f32(1, NAN)], np.float32(NAN))
    y = f32(2, NAN, -INF, NAN)
    for name in ("maximum", "minimum"):
        check(call(getattr(op, name)), [x, y], getattr(np, name)(x, y))
    for name in ("max", "min", "argmax", "argmin"):
        check(call(getattr(op, name)), [x], np.asarray(getattr(np, name)(x)))
    check(call(op.sort, -1), [y], f32(-INF, 2, NAN, NAN))
    check(call(op.argsort, -1), [f32(2, NAN, 1)], np.array([2, 0, 1], "int32"))
    check(call(op.clip, -2, 3), [x], f32(NAN, 1, 3, -2))
    check(call(op.nn.relu), [x], f32(NAN, 1, INF, 0))
    check(call(op.cumsum, 0), [f32(1, INF, -INF, 2)], f32(1, INF, NAN, NAN))
    check(call(op.nn.softmax, -1), [f32(1, INF)], f32(NAN, NAN))
    check(call(op.nn.softmax, -1), [f32(1, -INF)], f32(1, 0))
    check(call(op.sigmoid), [f32(INF, -INF, NAN)], f32(1, 0, NAN))
    check(call(op.tanh), [f32(INF, -INF, NAN)], f32(1, -1, NAN))
    check(lambda b, a: op.where(op.isnan(a), relax.const(0.0, "float32"), a), [x],
          f32(0, 1, INF, -INF))  # fmt: skip
    zeros = f32(0.0, -0.0)
    check(lambda b, a: op.divide(relax.const(1.0, "float32"), a), [zeros], f32(INF, -INF))
    check(lambda b, a: op.divide(relax.const(1.0, "float32"), op.negative(a)), [zeros],
          f32(-INF, INF))  # fmt: skip
    large = f32(1000, 0, -1000)
    check(call(op.nn.softmax, -1), [large], f32(1, 0, 0))
