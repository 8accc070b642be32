"""The bug classes that graph fuzzers found in TVM, ONNX Runtime and Inductor, one test for each.

Every case runs in the Relax interpreter and as native code at ``opt_level`` 0 and 3, and is
compared with what numpy gives. Layout rewriting has its own tests, in
tests/relax/transform/test_convert_layout.py.
"""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.transform import PassContext
from weft.relax import BlockBuilder, TensorStructInfo, Var, op
from weft.relax.reference.interpreter import run

NAN, INF = float("nan"), float("inf")


def graph(emit, arrays):
    """A module whose ``main`` returns what ``emit`` makes of its parameters."""
    params = [Var(f"x{i}", TensorStructInfo(a.shape, a.dtype.name)) for i, a in enumerate(arrays)]
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(emit(builder, *params))
        builder.emit_func_output(result)
    return builder.get()


def native(mod, arrays, level):
    """The result of native code."""
    with PassContext(opt_level=level):
        executable = relax.build(mod, "llvm")
    machine = relax.VirtualMachine(executable, weft.cpu())
    return machine["main"](*[weft.nd.array(a) for a in arrays]).numpy()


def check(emit, arrays, expected, tolerance=0.0):
    """Every way to run ``emit`` gives ``expected``: the dtype, the shape, the values."""
    arrays = [np.asarray(a) for a in arrays]
    expected = np.asarray(expected)
    mod = graph(emit, arrays)
    kept = [a.copy() for a in arrays]
    ways = {"interpreter": lambda: run(mod, "main", *arrays)}
    for level in (0, 3):
        ways[f"opt_level {level}"] = lambda level=level: native(mod, arrays, level)
    for name, way in ways.items():
        found = np.asarray(way())
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


def test_calls_in_place_keep_what_is_read_later():
    x = f32(1, 2, 3, 4)

    def emit(b, a):
        y = b.emit(op.add(a, a))
        z = b.emit(op.reshape(y, (2, 2)))  # a view of what the next call could overwrite
        w = b.emit(op.negative(y))
        return op.add(op.reshape(z, (4,)), op.add(op.exp(w), op.flip(y, 0)))

    y = x + x
    check(emit, [x], y + np.exp(-y) + y[::-1], 1e-6)


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


@pytest.mark.parametrize(("mode", "name"), [
    ("constant", "constant"), ("edge", "edge"), ("reflect", "reflect"), ("circular", "wrap"),
])  # fmt: skip
def test_pad_modes(mode, name):
    x = np.arange(12, dtype="float32").reshape(3, 4)
    check(call(op.nn.pad, [1, 2, 2, 1], mode), [x], np.pad(x, ((1, 2), (2, 1)), name))


def test_reductions_of_uint8_and_bool():
    x = np.array([200, 100, 255], "uint8")
    check(call(op.sum), [x], x.sum(dtype="uint8"))
    check(call(op.max), [x], x.max())
    check(call(op.min), [x], x.min())
    check(call(op.argmax), [x], np.int64(2))
    flags = np.array([[True, False], [False, False]])
    check(lambda b, a: op.sum(op.astype(a, "int32"), axis=1), [flags], np.array([1, 0], "int32"))


def test_float16_sums_and_products():
    x = np.full((1, 256), 0.25, "float16")
    check(call(op.sum), [x], np.float16(64))
    check(lambda b, a: op.matmul(a, op.permute_dims(a)), [x], np.array([[16]], "float16"))
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
    large = f32(1000, 0, -1000)
    check(call(op.nn.softmax, -1), [large], f32(1, 0, 0))
