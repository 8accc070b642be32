"""The cases of the conformance suite: operations on every data type, whole kernels on odd shapes.

Inputs are the ends of each type, what a processor may treat apart (zeros of both signs, NaN,
infinities, numbers below the normal ones, halves), and random numbers.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from tests.backends.batch import Case
from weft import te, tir, topi
from weft.script import tir as T
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
COUNT = 96
"""Elements of an elementwise case: whole vectors of every type and processor."""
KINDS = {"scalar": ForKind.SERIAL, "vector": ForKind.VECTORIZED}


def special(dtype: str) -> list:
    """Values of a type that a processor may treat apart."""
    kind = DataType(dtype)
    if kind.is_bool:
        return [False, True]
    if not kind.is_float:
        low, high = (int(f(dtype).value) for f in (op.min_value, op.max_value))
        values = [low, low + 1, high, high - 1, 0, 1, 2, 7, high // 2, low // 2]
        return values + ([-1, -2, -7] if low < 0 else [])
    info = {"float16": (65504.0, 6e-8, 6.1e-5), "bfloat16": (3.39e38, 1e-40, 1.2e-38),
            "float32": (3.4028235e38, 1e-45, 1.2e-38),
            "float64": (1.7976931348623157e308, 5e-324, 2.3e-308)}[dtype]  # fmt: skip
    parts = [0.0, 0.5, 1.0, 1.5, 2.5, 3.25, 0.1, 100.7, 127.5, 128.0, 255.5, 256.0, *info]
    return [*parts, *[-x for x in parts], np.nan, np.inf, -np.inf]


def filled(dtype: str, count: int, seed: int) -> np.ndarray:
    """An array of special values, in an order of its own, and random ones."""
    rng = np.random.default_rng(seed)
    kind = DataType(dtype)
    values = special(dtype)
    numpy_type = kind.numpy
    chosen = [values[i] for i in rng.integers(0, len(values), count)]
    with np.errstate(all="ignore"):
        array = np.array(chosen, "float64" if kind.is_float else "object").astype(numpy_type)
        at = rng.random(count) < 0.3
        if kind.is_float:
            array[at] = (rng.standard_normal(count) * 50).astype(numpy_type)[at]
        elif not kind.is_bool:
            low, high = (int(f(dtype).value) for f in (op.min_value, op.max_value))
            array[at] = rng.integers(low, high, count, numpy_type, endpoint=True)[at]
    return array


def elementwise(
    dtypes: list[str], out: str, compute: Callable[..., tir.PrimExpr], kind: ForKind
) -> PrimFunc:
    """``out[i] = compute(a0[i], a1[i], …)``."""
    inputs = [decl_buffer((COUNT,), dtype, f"a{k}") for k, dtype in enumerate(dtypes)]
    result = decl_buffer((COUNT,), out, "out")
    i = Var("i", "int32")
    body = BufferStore(result, compute(*[buffer[i] for buffer in inputs]), [i])
    return PrimFunc([*inputs, result], For(i, 0, COUNT, kind, body), attrs={"tir.noalias": True})


def case(
    name: str, dtypes: list[str], out: str, compute: Callable[..., tir.PrimExpr],
    fix: Callable[..., None] | None = None, ulp: float = 0.0,
) -> Iterator[Case]:  # fmt: skip
    """An elementwise operation, lane by lane and in vectors; ``fix`` edits the inputs."""
    seed = zlib.crc32(name.encode())
    for word, kind in KINDS.items():
        inputs = [filled(dtype, COUNT, seed + k) for k, dtype in enumerate(dtypes)]
        if fix is not None:
            fix(*inputs)
        arrays = (*inputs, np.zeros(COUNT, DataType(out).numpy))
        func = elementwise(dtypes, out, compute, kind)
        yield Case(f"{name} {word}", func, arrays, ulp=ulp)


def _nonzero(_: np.ndarray, divisor: np.ndarray) -> None:
    divisor[divisor == 0] = 3


def _small(_: np.ndarray, amount: np.ndarray) -> None:
    amount[...] = amount % (8 * amount.itemsize)


ANY = {
    "add": op.add, "subtract": op.subtract, "multiply": op.multiply, "min": op.min, "max": op.max
}  # fmt: skip
DIVISIONS = {
    "truncdiv": op.truncdiv, "truncmod": op.truncmod, "floordiv": op.floordiv,
    "floormod": op.floormod,
}  # fmt: skip
BITS = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
SHIFTS = {"shift_left": lambda a, b: a << b, "shift_right": lambda a, b: a >> b}
COMPARISONS = {
    "less": lambda a, b: a < b, "equal": lambda a, b: tir.EQ(a, b), "not_equal": tir.NE,
    "greater_equal": lambda a, b: a >= b,
}  # fmt: skip
ROUNDINGS = ("floor", "ceil", "round", "trunc", "nearbyint", "abs", "sqrt")
"""Exact functions of floats."""
PREDICATES = ("isnan", "isinf", "isfinite")
MATHS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt", "log1p", "exp2", "atan")


def arithmetic() -> Iterator[Case]:
    """Binary operations of one type."""
    for name, compute in ANY.items():
        for dtype in INTEGERS + FLOATS:
            yield from case(f"{name} {dtype}", [dtype] * 2, dtype, compute)
    for dtype in FLOATS:
        yield from case(f"divide {dtype}", [dtype] * 2, dtype, op.div)
    for (name, compute), dtype in itertools.product(DIVISIONS.items(), INTEGERS):
        yield from case(f"{name} {dtype}", [dtype] * 2, dtype, compute, _nonzero)
    for (name, compute), dtype in itertools.product(BITS.items(), (*INTEGERS, "bool")):
        yield from case(f"{name} {dtype}", [dtype] * 2, dtype, compute)
    for (name, compute), dtype in itertools.product(SHIFTS.items(), INTEGERS):
        yield from case(f"{name} {dtype}", [dtype] * 2, dtype, compute, _small)
        yield from case(f"{name} by any amount {dtype}", [dtype] * 2, dtype, compute)
    for (name, compute), dtype in itertools.product(COMPARISONS.items(), INTEGERS + FLOATS):
        yield from case(f"{name} {dtype}", [dtype] * 2, "bool", compute)


def faults() -> Iterator[Case]:
    """What ends with a fault: a divisor that is zero, an index that leaves its buffer."""
    for (name, compute), dtype in itertools.product(DIVISIONS.items(), INTEGERS):
        for each in case(f"{name} by zero {dtype}", [dtype] * 2, dtype, compute):
            each.arguments[1][COUNT - 1] = 0
            yield each
    for index in (-1, 96, 2**31 - 1, -(2**31)):
        places = np.arange(COUNT, dtype="int32")
        places[40] = index
        values = np.arange(COUNT, dtype="float32")
        yield Case(f"index {index}", GATHER, (values, places, np.zeros(COUNT, "float32")))


@T.prim_func
def GATHER(  # noqa: N802 - a constant
    A: T.Buffer((96,), "float32"), I: T.Buffer((96,), "int32"), B: T.Buffer((96,), "float32")
):
    for i in range(96):
        B[i] = A[I[i]]


def casts() -> Iterator[Case]:
    """Every type to every other."""
    types = (*INTEGERS, *FLOATS, "bool")
    for source, target in itertools.product(types, types):
        if source != target:
            yield from case(
                f"{source} to {target}", [source], target, lambda x, to=target: op.cast(to, x)
            )


def clipped() -> Iterator[Case]:
    """Floats between two constants as integers, rounded and cut off: what quantized layers do."""
    ends = (("uint8", 0, 255), ("int8", -128, 127), ("int16", -300, 300), ("int32", -9, 70_000))
    for source, (target, low, high), is_rounded in itertools.product(
        ("float32", "float64"), ends, (True, False)
    ):

        def compute(
            x: tir.PrimExpr, low: int = low, high: int = high, to: str = target,
            is_rounded: bool = is_rounded,
        ) -> tir.PrimExpr:  # fmt: skip
            inside = op.round(x) if is_rounded else x
            least, largest = (op.const(float(end), x.dtype) for end in (low, high))
            return op.cast(to, op.max(op.min(inside, largest), least))

        word = "rounded" if is_rounded else "cut off"
        yield from case(f"{source} clipped to {target}, {word}", [source], target, compute)


def functions() -> Iterator[Case]:
    """Functions of one number, and choices."""
    for name, dtype in itertools.product(ROUNDINGS, FLOATS):
        yield from case(f"{name} {dtype}", [dtype], dtype, getattr(tir, name))
    for name, dtype in itertools.product(PREDICATES, FLOATS):
        yield from case(f"{name} {dtype}", [dtype], "bool", getattr(tir, name))
    for name, dtype in itertools.product(MATHS, FLOATS):
        yield from case(f"{name} {dtype}", [dtype], dtype, getattr(tir, name), ulp=4)
    for dtype in INTEGERS + FLOATS:
        yield from case(
            f"select {dtype}", ["bool", dtype, dtype], dtype, lambda c, a, b: tir.Select(c, a, b)
        )
        yield from case(
            f"if_then_else {dtype}", ["bool", dtype, dtype], dtype,
            lambda c, a, b: tir.if_then_else(c, a, b),
        )  # fmt: skip
        yield from case(f"negative {dtype}", [dtype], dtype, lambda x: -x)
    for dtype in ("int32", "int64", "uint8", "uint32"):
        yield from case(f"popcount {dtype}", [dtype], dtype, tir.popcount)
    for dtype in ("float32", "float64"):
        yield from case(
            f"power {dtype}", [dtype] * 2, dtype, tir.power, lambda a, b: np.abs(a, out=a), ulp=16
        )


def kernel(name: str, out: object, inputs: list, scale: float = 1.0) -> Iterator[Case]:
    """A function of tensor expressions, as it stands and by the platform's default schedule."""
    func = te.create_prim_func([*inputs, out])
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = []
    for tensor in inputs:
        kind, shape = DataType(tensor.dtype), tuple(int(extent) for extent in tensor.shape)
        if kind.is_float:
            arrays.append((rng.standard_normal(shape) * scale).astype(kind.numpy))
        else:
            arrays.append(rng.integers(0, 100, shape).astype(kind.numpy))
    kind = DataType(out.dtype)
    arrays.append(np.zeros([int(extent) for extent in out.shape], kind.numpy))
    close = {"float64": 1e-12, "float32": 1e-5, "float16": 1e-2, "bfloat16": 5e-2}
    tolerance = close.get(str(out.dtype), 0.0)
    for scheduled in (False, True):
        word = "scheduled" if scheduled else "as defined"
        yield Case(f"{name} {word}", func, tuple(arrays), tolerance, scheduled)


def placeholder(shape: tuple[int, ...], dtype: str, name: str) -> te.Tensor:
    return te.placeholder(shape, dtype, name=name)


def products() -> Iterator[Case]:
    """Products and convolutions on shapes that fit no tile."""
    for dtype, (rows, columns, depth) in itertools.product(
        ("float32", "float64", "float16"), ((1, 7, 5), (13, 33, 17), (32, 32, 32), (5, 1, 64)),
    ):  # fmt: skip
        a, b = placeholder((rows, depth), dtype, "a"), placeholder((depth, columns), dtype, "b")
        yield from kernel(f"matmul {dtype} {rows}x{columns}x{depth}", topi.matmul(a, b), [a, b])
        c = placeholder((columns, depth), dtype, "c")
        yield from kernel(f"dense {dtype} {rows}x{columns}x{depth}", topi.nn.dense(a, c), [a, c])
    for left, right in (("int8", "int8"), ("uint8", "int8"), ("int16", "int16")):
        a, b = placeholder((9, 40), left, "a"), placeholder((24, 40), right, "b")
        yield from kernel(f"dense {left} {right}", topi.nn.dense(a, b, out_dtype="int32"), [a, b])
    for size, channels in ((9, 3), (12, 8)):
        x = placeholder((1, channels, size, size), "float32", "x")
        w = placeholder((10, channels, 3, 3), "float32", "w")
        out = topi.nn.conv2d(x, w, strides=(1, 1), padding=(1, 1), dilation=(1, 1))
        yield from kernel(f"conv2d {size} {channels}", out, [x, w])


def tensors() -> Iterator[Case]:
    """Reductions, softmax, movement."""
    for dtype in ("float32", "float64", "float16", "int32"):
        x = placeholder((5, 37), dtype, "x")
        yield from kernel(f"sum {dtype}", topi.sum(x, axis=1), [x])
        yield from kernel(f"max {dtype}", topi.max(x, axis=1), [x])
        yield from kernel(f"min {dtype}", topi.min(x, axis=0), [x])
        yield from kernel(f"transpose {dtype}", topi.transpose(x, [1, 0]), [x])
        yield from kernel(f"concatenate {dtype}", topi.concatenate([x, x], axis=1), [x])
        yield from kernel(
            f"strided_slice {dtype}", topi.strided_slice(x, [0, 1], [5, 37], [2, 3]), [x]
        )
    for dtype in ("float32", "float64", "float16"):
        x = placeholder((7, 45), dtype, "x")
        yield from kernel(f"softmax {dtype}", topi.nn.softmax(x, axis=-1), [x], 5.0)
        yield from kernel(f"log_softmax {dtype}", topi.nn.log_softmax(x, axis=-1), [x], 5.0)
        yield from kernel(f"gelu {dtype}", topi.nn.gelu(x), [x], 2.0)
        yield from kernel(f"relu {dtype}", topi.nn.relu(x), [x])
    x = placeholder((1, 3, 11, 11), "float32", "x")
    pool = topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    yield from kernel("max_pool2d", pool, [x])
    long = placeholder((64, 1024), "float32", "x")  # long enough for threads
    yield from kernel("exp on threads", topi.exp(long), [long])
    wide = placeholder((64, 64), "float32", "x")
    yield from kernel("transpose of whole tiles", topi.transpose(wide, [1, 0]), [wide])


GROUPS = {
    "arithmetic": arithmetic, "faults": faults, "casts": casts, "clipped": clipped,
    "functions": functions, "products": products, "tensors": tensors,
}  # fmt: skip
