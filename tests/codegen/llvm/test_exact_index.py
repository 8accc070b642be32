"""Sizes of memory whose arithmetic wraps are refused."""

import numpy as np
import pytest

import weft
from weft.script import from_source
from weft.support.errors import TVMError

ALLOCATION = """
@T.prim_func
def f(m: T.DTYPE, n: T.DTYPE, C: T.Buffer((1,), "float32")):
    B = T.alloc_buffer((m * n,), "float32")
    for i in T.serial(m):
        for j in T.serial(n):
            B[i * n + j] = T.float32(1)
    C[0] = B[0]
"""
VIEW = """
@T.prim_func
def f(m: T.DTYPE, n: T.DTYPE, A: T.Buffer((4,), "float32")):
    V = T.decl_buffer((m * n,), "float32", data=A.data)
    for i in T.serial(m):
        for j in T.serial(n):
            V[i * n + j] = T.float32(1)
"""


@pytest.mark.parametrize("text", [ALLOCATION, VIEW])
@pytest.mark.parametrize(("dtype", "size"), [("int64", 1 << 32), ("int32", 1 << 16)])
def test_a_product_that_wraps_to_no_bytes(text, dtype, size):
    built = weft.build(from_source(text.replace("DTYPE", dtype)))
    out = np.zeros(4, "float32")[: 1 if text is ALLOCATION else 4]
    with pytest.raises(TVMError, match="cannot allocate|reaches to byte"):
        built["f"](size, size, out)
    built["f"](2, 2, out)
    assert (out == 1).all()


def test_an_allocation_of_less_than_nothing_is_refused():
    text = ALLOCATION.replace("m * n", "-5").replace("DTYPE", "int64")
    with pytest.raises(TVMError, match="extent must not be negative, got -5"):
        weft.build(from_source(text))


SYMBOLS = """
@T.prim_func
def f(p: T.handle, q: T.handle, C: T.Buffer((16,), "float32")):
    m, n = T.int64(), T.int64()
    X = T.match_buffer(p, (m, T.int64(0)), "int8")
    Y = T.match_buffer(q, (n, T.int64(0)), "int8")
"""
EXTREME = """
    B = T.alloc_buffer((T.max(m * n, T.int64(1)),), "float32")
    for i, j in T.grid(m, n):
        B[i * n + j] = C[0]
    C[0] = B[0]
"""
CONDITION = """
    if m * n <= T.int64(16):
        for i, j in T.grid(m, n):
            C[i * n + j] = T.float32(1)
"""
LET = """
    with T.LetStmt(m * n) as x:
        if x <= T.int64(16):
            for i, j in T.grid(m, n):
                C[i * n + j] = T.float32(1)
"""


@pytest.mark.parametrize("body", [EXTREME, CONDITION, LET])
def test_a_proof_rests_on_no_product_that_wraps(body):
    """Extents of arrays without elements may be so large that their product is 0."""
    built = weft.build(from_source(SYMBOLS + body))["f"]
    huge, big = np.empty((1 << 32, 0), "int8"), np.zeros(4096, "float32")
    with pytest.raises(TVMError, match="cannot allocate|index 16 is out of bounds"):
        built(huge, huge, big[2048:2064])
    assert not np.flatnonzero(big[:2048]).size
    assert not np.flatnonzero(big[2064:]).size
    built(huge[:3], huge[:5], big[2048:2064])


def test_extents_beyond_all_memory_are_refused():
    built = weft.build(from_source(SYMBOLS + "    C[m - m] = T.float32(n)\n"))["f"]
    huge = np.empty((1 << 47, 0), "int8")
    with pytest.raises(TVMError, match="f: m is 140737488355328, expected less than"):
        built(huge, huge, np.zeros(16, "float32"))


NEGATIVE_STRIDE = """
@T.prim_func
def f(p: T.handle, C: T.Buffer((16,), "float32")):
    n, s = T.int64(), T.int64()
    X = T.match_buffer(p, (n,), "float32", strides=(s,))
    C[s + T.int64(1)] = X[n - T.int64(1)]
"""


def test_a_stride_may_be_negative():
    built = weft.build(from_source(NEGATIVE_STRIDE))["f"]
    x, out = np.arange(8, dtype="float32"), np.zeros(16, "float32")
    built(x[::-1], out)
    assert out.tolist() == [0.0] * 16
    x[0] = 5
    built(x[::-1], out)
    assert out[0] == 5
    with pytest.raises(IndexError, match="index -1 is out of bounds for buffer C"):
        built(x[::-2], out)


FAR = """
@T.prim_func
def f(p: T.handle, C: T.Buffer((16,), "int32")):
    n = T.int64()
    A = T.match_buffer(p, (n,), "int32")
    C[0] = A[n * T.int64(0x7FFFFFFFFFFFFFFC)]
"""
DIVISOR = """
@T.prim_func
def f(p: T.handle, C: T.Buffer((16,), "int32")):
    n = T.int64()
    A = T.match_buffer(p, (n,), "int32")
    if n >= T.int64(1):
        C[0] = T.Cast("int32", T.Cast("int64", A[0]) // (n * T.int64(0x4000000000000000)))
"""


def test_an_index_of_which_half_is_proved_is_tested_whole():
    built = weft.build(from_source(FAR))["f"]
    x, out = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    for n in (1, 2, 3, 8):
        with pytest.raises(IndexError, match="is out of bounds for buffer A of extent"):
            built(x[:n], out)


def test_a_divisor_that_wraps_to_0_is_a_fault():
    built = weft.build(from_source(DIVISOR))["f"]
    x, out = np.arange(16, dtype="int32"), np.zeros(16, "int32")
    with pytest.raises(TVMError, match="division by zero"):
        built(x[:4], out)
    built(x[:1], out)


CHOSEN = """
@T.prim_func
def f(p: T.int64, q: T.int64, a: T.handle, i: T.int64):
    A = T.match_buffer(a, (EXTENT,), "int8")
    A[i] = T.int8(1)
"""
EXTENTS = (
    "T.max(p * q, T.int64(1))",
    "T.Select(p * q < T.int64(0), T.int64(1), p * q)",
    "(p * q + T.int64(20)) // T.int64(5) - T.int64(4)",
)


@pytest.mark.parametrize("extent", EXTENTS)
def test_an_extent_that_wraps_here_and_not_for_the_caller(extent):
    """p * q is 5 modulo 2**64; the caller's number is negative."""
    built = weft.build(from_source(CHOSEN.replace("EXTENT", extent)))["f"]
    big = np.zeros(64, "int8")
    p, q = 11 * 59 * 98818999, -287630261
    with pytest.raises(TVMError, match="extent of a parameter does not fit|expected shape"):
        built(p, q, big[30:31], 4)
    assert not big.any()


def test_an_extent_that_divides_by_0_is_refused():
    text = CHOSEN.replace("EXTENT", "T.int64(8) // p")
    built = weft.build(from_source(text))["f"]
    with pytest.raises(TVMError, match=r"argument 2 \(A\): its shape \(.8 // p.,\) divides by 0"):
        built(0, 1, np.zeros(4, "int8"), 0)
    built(2, 1, np.zeros(4, "int8"), 0)


SHORT = """
@T.prim_func
def f(x: T.handle, a: T.handle, i: T.int64):
    n = T.int32()
    X = T.match_buffer(x, (n, 0), "int8")
    A = T.match_buffer(a, (n + 70000,), "int8", strides=(0,))
    A[i] = T.int8(1)
"""


def test_an_extent_beyond_32_bits_is_refused():
    built = weft.build(from_source(SHORT))["f"]
    n, memory = (1 << 31) - 70000, np.zeros(1, "int8")
    for count in (n, n - 1):
        x = np.empty((count, 0), "int8")
        a = np.lib.stride_tricks.as_strided(memory, (count + 70000,), (0,))
        with pytest.raises(TVMError, match="does not fit in its type|is out of bounds"):
            built(x, a, 1 << 40)
