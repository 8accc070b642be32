"""Random programs: native code and the reference interpreter give the same bits.

Contraction is off. A program is loops, branches, lets and stores of random expressions over a few
buffers. Where the interpreter faults, native code may: it tests flat offsets, and what does not
reach the result may be gone. Simplify stays out: it takes int32 and int64 arithmetic not to wrap.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from weft.backends.cpu.backend import BACKEND
from weft.driver.pipeline import lower_tir
from weft.ir.expr import FloatImm, IntImm
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.ndarray import array
from weft.support.dtype import DataType
from weft.support.errors import TVMError
from weft.target.target import Target
from weft.tir import expr as e
from weft.tir import op
from weft.tir import stmt as s
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc
from weft.tir.interp.machine import run as interpret

pytestmark = pytest.mark.sampled(3)

DTYPES = "int8 int16 int32 int64 uint8 uint32 float16 float32 float64 bool".split()
INT_OPS = [e.Add, e.Sub, e.Mul, e.Min, e.Max, e.FloorDiv, e.FloorMod, e.Div, e.Mod]
FLOAT_OPS = [e.Add, e.Sub, e.Mul, e.Min, e.Max, e.Div]
COMPARE = [e.EQ, e.NE, e.LT, e.LE, e.GT, e.GE]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"]


LOWER = Sequential([step for step in lower_tir().passes if "Simplify" not in step.info.name])


class Writer:
    """Draws a program."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.loops: list[e.Var] = []
        self.lets: list[e.Var] = []
        self.earlier: dict[object, list[e.PrimExpr]] = {}
        self.buffers = []
        for number in range(self.draw.randint(2, 4)):
            shape = tuple(self.draw.randint(1, 6) for _ in range(self.draw.randint(1, 2)))
            self.buffers.append(decl_buffer(shape, self.draw.choice(DTYPES), f"b{number}"))

    def func(self) -> PrimFunc:
        body = s.seq(*[self.statement(3) for _ in range(self.draw.randint(1, 3))])
        return PrimFunc(self.buffers, body, attrs={"global_symbol": "main"})

    def statement(self, depth: int) -> s.Stmt:
        kind = self.draw.random()
        if depth and kind < 0.5:
            var = e.Var(f"i{len(self.loops)}", self.draw.choice(["int32", "int64"]))
            low, extent = self.draw.randint(-1, 2), self.draw.randint(0, 6)
            self.loops.append(var)
            body = s.seq(*[self.statement(depth - 1) for _ in range(self.draw.randint(1, 2))])
            self.loops.pop()
            which = self.draw.choice([s.ForKind.SERIAL, s.ForKind.SERIAL, s.ForKind.UNROLLED])
            return s.For(var, IntImm(var.dtype, low), IntImm(var.dtype, extent), which, body)
        if depth and kind < 0.65:
            other = self.statement(depth - 1) if self.draw.random() < 0.5 else None
            return s.IfThenElse(self.expr(DataType("bool"), 3), self.statement(depth - 1), other)
        if depth and kind < 0.75:
            dtype = DataType(self.draw.choice(DTYPES))
            var = e.Var(f"v{len(self.lets)}", dtype)
            value = self.expr(dtype, 3)
            self.lets.append(var)
            body = self.statement(depth - 1)
            self.lets.pop()
            return s.LetStmt(var, value, body)
        buffer = self.draw.choice(self.buffers)
        return s.BufferStore(buffer, self.expr(buffer.dtype, 4), self.indices(buffer))

    def indices(self, buffer) -> list[e.PrimExpr]:
        return [self.index(extent.value) for extent in buffer.shape]

    def index(self, extent: int) -> e.PrimExpr:
        kind = self.draw.random()
        if self.loops and kind < 0.8:
            var = self.draw.choice(self.loops)
            moved = op.add(var, IntImm(var.dtype, self.draw.randint(-1, 2)))
            if kind < 0.6:
                return op.floormod(moved, IntImm(var.dtype, extent))
            return op.max(op.min(moved, IntImm(var.dtype, extent - 1)), IntImm(var.dtype, 0)) if (
                kind < 0.75) else moved  # fmt: skip
        if kind > 0.97:
            return self.expr(DataType("int32"), 2)
        return IntImm("int32", self.draw.randrange(extent))

    def expr(self, dtype: DataType, depth: int) -> e.PrimExpr:
        """A new expression, or the same object as an earlier one over the same names."""
        earlier = self.earlier.setdefault((dtype, *map(id, (*self.loops, *self.lets))), [])
        if earlier and self.draw.random() < 0.2:
            return self.draw.choice(earlier)
        earlier.append(self.fresh(dtype, depth))
        return earlier[-1]

    def fresh(self, dtype: DataType, depth: int) -> e.PrimExpr:
        if depth == 0 or self.draw.random() < 0.15:
            return self.leaf(dtype)
        kind = self.draw.random()
        if kind < 0.1:
            return e.Cast(dtype, self.expr(DataType(self.draw.choice(DTYPES)), depth - 1))
        if kind < 0.2:
            make = self.draw.choice([e.Select, op.if_then_else])
            arms = [self.expr(dtype, depth - 1) for _ in range(2)]
            return make(self.expr(DataType("bool"), depth - 1), *arms)
        if dtype.is_bool:
            return self.condition(depth)
        a, b = self.expr(dtype, depth - 1), self.expr(dtype, depth - 1)
        if dtype.is_integral and kind < 0.35:
            return e.Call(dtype, f"tir.{self.draw.choice(BITS)}", [a, b])
        chosen = self.draw.choice(FLOAT_OPS if dtype.is_float else INT_OPS)
        if dtype.is_integral and chosen in INT_OPS[5:] and self.draw.random() < 0.9:
            b = e.Max(b, IntImm(dtype, 1))
        if dtype.is_float and chosen in (e.Min, e.Max):
            return e.Add(chosen(a, b), FloatImm(dtype, 0.0))  # which zero they return is left open
        return chosen(a, b)

    def condition(self, depth: int) -> e.PrimExpr:
        kind = self.draw.random()
        if kind < 0.3:
            both = self.draw.choice([e.And, e.Or])
            return both(self.condition(depth - 1), self.condition(depth - 1)) if depth > 0 else (
                self.leaf(DataType("bool")))  # fmt: skip
        if kind < 0.4:
            return e.Not(
                self.expr(DataType("bool"), depth - 1) if depth > 0 else self.leaf(DataType("bool"))
            )
        dtype = DataType(self.draw.choice(DTYPES[:-1]))
        return self.draw.choice(COMPARE)(
            self.expr(dtype, max(0, depth - 1)), self.expr(dtype, max(0, depth - 1))
        )

    def leaf(self, dtype: DataType) -> e.PrimExpr:
        choices = [v for v in (*self.loops, *self.lets) if v.dtype is dtype]
        if choices and self.draw.random() < 0.5:
            return self.draw.choice(choices)
        holders = [b for b in self.buffers if b.dtype is dtype]
        if holders and self.draw.random() < 0.6:
            buffer = self.draw.choice(holders)
            return BufferLoad(buffer, self.indices(buffer))
        if dtype.is_float:
            return FloatImm(dtype, self.draw.choice([0.0, 1.0, -1.5, 3.25, 100.0, -0.1]))
        if dtype.is_bool:
            return IntImm(dtype, self.draw.randint(0, 1))
        info = np.iinfo(str(dtype))
        value = self.draw.choice([0, 1, 2, 3, 7, -1, -2, info.max, info.min])
        return IntImm(dtype, min(max(value, info.min), info.max))


def inputs(func: PrimFunc, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    made = []
    for param in func.params:
        buffer = func.buffer_map[param]
        shape = tuple(extent.value for extent in buffer.shape)
        kind = np.dtype(str(buffer.dtype))
        if kind.kind == "f":
            made.append(rng.choice([0.0, 1, -2.5, 7, 0.1, 300], shape).astype(kind))
        elif kind.kind == "b":
            made.append(rng.integers(0, 2, shape).astype(kind))
        else:
            info = np.iinfo(kind)
            made.append(rng.choice([0, 1, 2, 5, 100, info.max, info.min], shape).astype(kind))
    return made


def outcome(call, arrays):
    try:
        call(*arrays)
    except TVMError as error:
        return error
    return None


def compare(seed: int) -> None:
    func = Writer(seed).func()
    expected = inputs(func, seed)
    fault = outcome(lambda *a: interpret(func, *a), expected)
    given = [array(a) for a in inputs(func, seed)]
    try:
        lowered = LOWER(IRModule({"main": func}))
        compiled = BACKEND.emit(lowered, Target("llvm -fast-math-contract=0"))
    except TVMError:
        assert fault is not None, f"seed {seed}: refused\n{func}"
        return
    native = NativeLibrary(compiled.object_code).function(compiled.specs[0])
    mine = outcome(native, given)
    assert mine is None or fault is not None, f"seed {seed}: {mine!r}\n{func}"
    if fault is not None:
        return
    for got, want in zip(given, expected, strict=True):
        same = got.numpy() == want
        nan = (got.numpy() != got.numpy()) & (want != want)
        assert (same | nan).all(), f"seed {seed}:\n{func.script()}\n{got.numpy()}\n{want}"


@pytest.mark.parametrize("block", range(10))
def test_native_code_equals_the_interpreter(block):
    for seed in range(block * 40, block * 40 + 40):
        compare(seed)
