"""Random expressions and statements: what is printed comes back as it was, node by node."""

from __future__ import annotations

import math
import random

import pytest

from weft.ir.expr import FloatImm, IntImm, StringImm, integer_range
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.tir import expr as nodes
from weft.tir import op, stmt
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.function import PrimFunc

INTEGERS = ("int8", "uint8", "int16", "int32", "int32", "int64", "uint32", "uint64")
REALS = ("float16", "bfloat16", "float32", "float32", "float64")
ARITHMETIC = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Min, nodes.Max)
DIVISIONS = (nodes.FloorDiv, nodes.FloorMod, nodes.Div, nodes.Mod)
COMPARISONS = (nodes.LT, nodes.LE, nodes.GT, nodes.GE, nodes.EQ, nodes.NE)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e30, 1e-7, 65504.0, math.inf, -math.inf, math.nan, 3.0)


class Programs:
    """Random programs over two variables and a buffer of each type."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.types = [*self.rng.sample(INTEGERS, 2), self.rng.choice(REALS), "int32"]
        self.types = list(dict.fromkeys(self.types))
        self.variables = {
            dtype: [nodes.Var(f"{name}_{dtype}", dtype) for name in "xy"] for dtype in self.types
        }
        self.flag = nodes.Var("p", "bool")
        self.buffers = {
            dtype: decl_buffer((16, 16), dtype, f"A_{dtype}") for dtype in (*self.types, "bool")
        }

    def constant(self, dtype):
        kind = DataType(dtype)
        if kind.is_integral:
            low, high = integer_range(kind)
            values = [low, high, 0, 1, 2, 7, 100, max(low, -1), max(low, -3)]
            return IntImm(dtype, self.rng.choice(values))
        return FloatImm(dtype, self.rng.choice(NUMBERS))

    def index(self):
        return [self.of("int32", self.rng.randrange(2)) for _ in range(2)]

    def of(self, dtype, depth):
        """An expression of a type; constants and operators stand in any place."""
        rng = self.rng
        leaf = [lambda: rng.choice(self.variables[dtype]), lambda: self.constant(dtype)]
        if depth == 0:
            return rng.choice(leaf)()

        def less():
            return self.of(dtype, rng.randrange(depth))

        inner = [
            lambda: rng.choice(ARITHMETIC)(less(), less()),
            lambda: rng.choice(ARITHMETIC)(less(), less()),
            lambda: nodes.Cast(dtype, self.of(rng.choice(self.types), depth - 1)),
            lambda: nodes.Select(self.condition(depth - 1), less(), less()),
            lambda: op.if_then_else(self.condition(depth - 1), less(), less()),
            lambda: BufferLoad(self.buffers[dtype], self.index()),
            lambda: self.let(dtype, depth),
        ]
        if DataType(dtype).is_integral:
            inner += [
                lambda: rng.choice(DIVISIONS)(less(), self.nonzero(dtype)),
                lambda: rng.choice([op.bitwise_and, op.bitwise_or, op.bitwise_xor])(less(), less()),
                lambda: op.shift_right(less(), IntImm(dtype, rng.randrange(4))),
                lambda: op.bitwise_not(less()),
                lambda: op.abs(less()),
            ]  # fmt: skip
        else:
            inner += [lambda: nodes.Div(less(), less()), lambda: op.exp(less()),
                      lambda: op.power(less(), less())]  # fmt: skip
        return rng.choice(inner)()

    def nonzero(self, dtype):
        value = self.constant(dtype)
        return value if value.value else IntImm(dtype, 5)

    def let(self, dtype, depth):
        kind = self.rng.choice(self.types)
        var = nodes.Var(self.rng.choice(["v", "w", "x"]), kind)
        self.variables[kind].append(var)
        body = self.of(dtype, depth - 1)
        self.variables[kind].remove(var)
        return nodes.Let(var, self.of(kind, depth - 1), body)

    def condition(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < 0.4:
            dtype = rng.choice(self.types)
            compare = rng.choice(COMPARISONS)(self.of(dtype, max(depth, 0)), self.of(dtype, 0))
            load = BufferLoad(self.buffers["bool"], self.index())
            return rng.choice([compare, compare, compare, self.flag, load])
        if rng.random() < 0.3:
            return nodes.Not(self.condition(depth - 1))
        join = rng.choice([nodes.And, nodes.Or])
        return join(self.condition(depth - 1), self.condition(depth - 1))

    def statement(self, depth):
        """A statement that holds expressions."""
        rng = self.rng
        dtype = rng.choice(self.types)
        value = self.of(dtype, rng.randrange(4))
        store = stmt.BufferStore(self.buffers[dtype], value, self.index())
        if depth == 0:
            return rng.choice([store, store, stmt.Evaluate(op.call_extern("int32", "f", value))])
        inner = self.statement(depth - 1)
        loop = nodes.Var(rng.choice(["i", "j", "i"]), "int32")
        let = nodes.Var(rng.choice(["t", "t_1"]), dtype)
        return rng.choice([
            lambda: stmt.For(loop, self.of("int32", 1), self.of("int32", 1),
                             rng.choice([stmt.ForKind.SERIAL, stmt.ForKind.PARALLEL,
                                         stmt.ForKind.UNROLLED]), inner),
            lambda: stmt.IfThenElse(self.condition(2), inner, self.statement(depth - 1)),
            lambda: stmt.IfThenElse(self.condition(1), inner),
            lambda: stmt.LetStmt(let, value, inner),
            lambda: stmt.seq(store, inner, self.statement(depth - 1)),
            lambda: stmt.While(self.condition(1), inner),
            lambda: stmt.AssertStmt(self.condition(1), StringImm("it's \"so\"\n\\"), inner),
            lambda: stmt.AttrStmt(loop, "key", value, inner),
        ])()  # fmt: skip

    def function(self):
        """A function of one such statement, with all variables and buffers as parameters."""
        params = [var for variables in self.variables.values() for var in variables] + [self.flag]
        buffers = {nodes.Var(f"h_{b.name}", "handle"): b for b in self.buffers.values()}
        body = self.statement(self.rng.randrange(4))
        return PrimFunc([*params, *buffers], body, None, buffers)


def come_back(func, seed):
    text = func.script(show_meta=True)
    back = from_source(text, check_well_formed=False)
    same = structural_equal(back, func, map_free_vars=True)
    assert same, f"seed {seed}:\n{text}\n{back.script()}"
    assert back.script(show_meta=True) == text, f"seed {seed}"


@pytest.mark.parametrize("begin", [0, 100, 200, 300])
def test_what_is_printed_comes_back(begin):
    for seed in range(begin, begin + 60):
        come_back(Programs(seed).function(), seed)


def test_vectors_come_back():
    for seed in range(1000, 1060):
        programs = Programs(seed)
        rng, dtype = programs.rng, programs.rng.choice(programs.types)
        lanes = rng.choice([2, 4, 16])
        base = nodes.Ramp(programs.of("int32", 1), IntImm("int32", rng.choice([1, 2, -1])), lanes)
        load = BufferLoad(programs.buffers[dtype], [programs.of("int32", 1), base])
        value = nodes.Broadcast(programs.of(dtype, 2), lanes)
        value = rng.choice([value, nodes.Add(load, value), nodes.Max(value, load)])
        store = stmt.BufferStore(programs.buffers[dtype], value, [programs.of("int32", 0), base])
        params = [var for variables in programs.variables.values() for var in variables]
        buffers = {nodes.Var(f"h_{b.name}", "handle"): b for b in programs.buffers.values()}
        come_back(PrimFunc([*params, programs.flag, *buffers], store, None, buffers), seed)


@pytest.mark.parametrize(
    ("begin", "extent", "text"),
    [
        ("x", 4, "range(x, x + 4)"), (0, "x", "range(x)"), (2, 6, "range(2, 8)"),
        ("x", "y", "range(x, x + y)"), ("x", 0, "range(x, x)"), (3, "x", "range(3, 3 + x)"),
    ],
)  # fmt: skip
def test_loops_come_back_with_their_extent(begin, extent, text):
    names = {"x": nodes.Var("x", "int32"), "y": nodes.Var("y", "int32")}
    first, count = (names.get(end, end) for end in (begin, extent))
    loop = stmt.For(nodes.Var("i", "int32"), first, count, stmt.ForKind.SERIAL, stmt.Evaluate(0))
    func = PrimFunc([*names.values()], loop)
    assert f"for i in {text}:" in func.script()
    come_back(func, 0)


def test_an_extent_that_is_a_difference_comes_back():
    x = nodes.Var("x", "int32")
    loop = stmt.For(nodes.Var("i", "int32"), x + 1, nodes.Sub(x + 5, x + 1), stmt.ForKind.SERIAL,
                    stmt.Evaluate(0))  # fmt: skip
    come_back(PrimFunc([x], loop), 0)


def test_a_loop_whose_end_is_no_number_of_its_type_has_no_text():
    loop = stmt.For(nodes.Var("i", "int32"), 1, 2**31 - 1, stmt.ForKind.SERIAL, stmt.Evaluate(0))
    with pytest.raises(IRTypeError, match="a loop's extent has no printed form"):
        PrimFunc([], loop).script()
