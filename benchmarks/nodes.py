"""Compile time is Python time: microseconds per node for building, walking, rewriting, comparing.

Run: ``python benchmarks/nodes.py``. The program is a chain of additions and a convolution of topi;
each figure is the best of five. A plain slotted class of two fields stands beside as the floor; so
do classes with what node classes do without: a metaclass, and ``__getattr__``.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from weft import ir, te, tir, topi
from weft.ir.functor import Mutator, collect, post_order_visit

COUNT = 20_000
REPEATS = 5


class Plain:
    """What Python itself asks for: a class with two slots."""

    __slots__ = ("a", "b")

    def __init__(self, a: object, b: object) -> None:
        self.a = a
        self.b = b


class Metaclass(type):
    """A metaclass that does nothing."""


class WithMetaclass(metaclass=Metaclass):
    """Its ``isinstance`` asks the metaclass whether it has a check of its own."""


class WithGetattr(Plain):
    """Python 3.11 does not specialise the lookup of its attributes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)


def isinstance_of(kind: type, value: object) -> float:
    """Microseconds of one ``isinstance``, the loop around it taken off."""

    def ask() -> None:
        for _ in range(COUNT):
            isinstance(value, kind)

    return best(ask, COUNT) - empty_loop()


def attribute_of(value: Plain | tir.Add) -> float:
    """Microseconds to read the attribute ``a``, the loop around it taken off."""

    def read() -> None:
        for _ in range(COUNT):
            value.a  # noqa: B018 - the reading is what is timed

    return best(read, COUNT) - empty_loop()


def empty_loop() -> float:
    """Microseconds of a turn of a loop that does nothing."""

    def turn() -> None:
        for _ in range(COUNT):
            pass

    return best(turn, COUNT)


def best(action: Callable[[], object], nodes: int) -> float:
    """Microseconds per node of the fastest of some runs."""
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begin)
    return min(seconds) / nodes * 1e6


def chain(make: Callable[[object, object], object], x: object) -> object:
    """A left-leaning chain of ``COUNT`` binary nodes."""
    made = x
    for _ in range(COUNT):
        made = make(made, x)
    return made


def convolution() -> tir.PrimFunc:
    """A function of everyday size."""
    data = te.placeholder((1, 16, 32, 32), name="data")
    weight = te.placeholder((32, 16, 3, 3), name="weight")
    return te.create_prim_func([data, weight, topi.nn.relu(topi.nn.conv2d(data, weight, 1, 1, 1))])


def rows() -> list[tuple[str, float]]:
    """(what, microseconds per node)."""
    x = tir.Var("x", "int32")
    expr = chain(tir.Add, x)
    func, again = convolution(), convolution()
    size = len(collect(func, ir.Node))

    class Rename(Mutator):
        def visit_IntImm(self, imm: ir.IntImm) -> ir.IntImm:
            return ir.IntImm(imm.dtype, imm.value)

    return [
        ("build: plain class", best(lambda: chain(Plain, x), COUNT)),
        ("build: node constructor", best(lambda: chain(tir.Add, x), COUNT)),
        ("build: operator +", best(lambda: chain(lambda a, b: a + b, x), COUNT)),
        ("visit: chain", best(lambda: post_order_visit(expr, lambda node: None), COUNT)),
        ("visit: convolution", best(lambda: post_order_visit(func, lambda node: None), size)),
        ("rewrite: nothing changes", best(lambda: Mutator().visit(func), size)),
        ("rewrite: constants change", best(lambda: Rename().visit(func), size)),
        ("structural_equal", best(lambda: ir.structural_equal(func, again), size)),
        ("structural_hash", best(lambda: ir.structural_hash(func), size)),
        ("save_json", best(lambda: ir.save_json(func), size)),
        ("script", best(func.script, size)),
        ("isinstance: node class", isinstance_of(tir.Mul, expr)),
        ("isinstance: with a metaclass", isinstance_of(WithMetaclass, expr)),
        ("attribute: node", attribute_of(expr)),
        ("attribute: with __getattr__", attribute_of(WithGetattr(1, 2))),
    ]


if __name__ == "__main__":
    for name, microseconds in rows():
        print(f"{name:28} {microseconds:7.3f} us per node")
