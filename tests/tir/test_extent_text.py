"""What the text of an extent computes is what the interpreter and native code compute."""

import random

import numpy as np
import pytest

import weft
from weft.script import from_source
from weft.support.errors import CodegenError, TVMError
from weft.tir import expr as e
from weft.tir import interp, op
from weft.tir.extent_text import extent_text
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, SeqStmt

LONG = (e.Var("n", "int64"), e.Var("m", "int64"))
SHORT = (e.Var("p", "int32"), e.Var("q", "int32"))
VALUES = ((5, 3, 7, 2), (-5, 3, -7, 2), (0, -1, 65536, 32768), (1 << 40, -9, 2**31 - 1, -(2**31)))


def text_of(expr):
    return extent_text(expr, lambda var: var.name, lambda var: True)


def drawn(rng, variables, depth):
    """A random expression: what an extent may be, and what it may not."""
    if depth == 0:
        return rng.choice([*variables, op.const(rng.randint(-3, 9), variables[0].dtype)])
    a, b = drawn(rng, variables, depth - 1), drawn(rng, variables, depth - 1)
    divisor = op.const(rng.choice([1, 2, 3, 7, 65536]), a.dtype)
    makers = (
        lambda: a + b, lambda: a - b, lambda: e.Mul(a, b), lambda: e.FloorDiv(a, divisor),
        lambda: e.FloorMod(a, divisor), lambda: e.Div(a, divisor), lambda: e.Mod(a, divisor),
        lambda: e.Min(a, b), lambda: e.Max(a, b), lambda: e.Select(e.LT(a, b), a, b),
        lambda: e.Select(e.And(e.LT(a, b), e.Not(e.EQ(b, divisor))), a, b),
        lambda: e.Select(e.Or(e.LT(a, b), e.NE(a, divisor)), a, b),
    )  # fmt: skip
    return rng.choice(makers)()


def test_texts_are_the_numbers_of_programs():
    """Random expressions of both widths; a wide intermediate that exceeds 64 bits is left out."""
    rng = random.Random(3)
    exprs = [drawn(rng, rng.choice([LONG, SHORT]), rng.randint(1, 3)) for _ in range(120)]
    known = [(x, t) for x in exprs if (t := text_of(x)) is not None]
    assert len(known) > 80
    params = [e.Var("out", "handle"), *LONG, *SHORT]
    out = weft.tir.decl_buffer((len(known),), "int64", "out")
    stores = [BufferStore(out, op.cast("int64", x), [i]) for i, (x, _) in enumerate(known)]
    func = PrimFunc(params, SeqStmt(stores), None, {params[0]: out})
    built = weft.build(func.with_attr("global_symbol", "f"))
    for values in VALUES:
        native, meant = np.zeros(len(known), "int64"), np.zeros(len(known), "int64")
        built["f"](native, *values)
        interp.run(func, meant, *values)
        np.testing.assert_array_equal(native, meant)
        names = dict(zip("nmpq", values, strict=True))
        for (x, text), number in zip(known, meant, strict=True):
            size = 1 << x.dtype.bits
            told = eval(text, {"min": min, "max": max}, names)
            assert (told - int(number)) % size == 0, (x, text, names)


@pytest.mark.parametrize(
    ("extent", "told"),
    [
        (e.Div(LONG[0] - 7, op.const(2, "int64")), -1),
        (e.Mod(LONG[0] - 7, op.const(2, "int64")), -1),
        (e.FloorDiv(SHORT[0] * SHORT[1], op.const(65536, "int32")), -32768),
    ],
)
def test_examples(extent, told):
    text = text_of(extent)
    assert eval(text, {}, {"n": 4, "p": 32768, "q": 65536}) == told


@pytest.mark.parametrize(
    "extent",
    [
        'T.int64(1000) - T.Cast("int64", T.Cast("uint8", n))',
        'T.Cast("int64", T.Cast("int32", n)) + T.int64(8)',
        "T.truncdiv(n, T.int64(-2)) + T.int64(20)",
        'T.Cast("int64", T.Cast("int32", T.Cast("uint32", n))) + T.int64(20)',
        'T.Cast("int64", T.Cast("int8", k)) + T.int64(200)',
        "T.bitwise_and(n, T.int64(255))",
    ],
)
def test_what_has_no_text_is_refused(extent):
    source = f"""
@T.prim_func
def f(a: T.handle, n: T.int64, k: T.uint8):
    A = T.match_buffer(a, ({extent},), "float32")
    A[0] = T.float32(1)
"""
    with pytest.raises(CodegenError, match="caller can check, got .*; compute that number"):
        weft.build(from_source(source))


def test_an_argument_that_native_code_would_leave_is_refused():
    """The example wrote 65,536 elements behind its argument: ``n * m`` is -2**31 in 32 bits."""
    source = """
@T.prim_func
def f(a: T.handle, n: T.int32, m: T.int32):
    A = T.match_buffer(a, (40000 - (n * m) // 65536,), "float32")
    for i in range(40000 - (n * m) // 65536):
        A[i] = T.float32(9)
"""
    built = weft.build(from_source(source))
    with pytest.raises(TVMError, match=r"expected shape \(72768,\)"):
        built["f"](np.zeros(7232, "float32"), 32768, 65536)
    whole = np.zeros(72768, "float32")
    built["f"](whole, 32768, 65536)
    assert (whole == 9).all()
