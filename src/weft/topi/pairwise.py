"""Probabilities of several classes from those of each pair of them."""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import expect
from weft.te.operation import extern
from weft.te.tensor import Tensor
from weft.tir import ir_builder, op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.stmt import Stmt

STEPS: Final = 100
"""The most rounds over all classes."""
TOLERANCE: Final = 0.005
"""The error, divided by the number of classes, below which the rounds end."""


def couple_pairs(pairs: Tensor) -> Tensor:
    """Probabilities (rows, count) from ``pairs`` (rows, count, count); the count is a number.

    ``pairs[n, i, j]`` is the probability of class i where only i and j are possible. This is the
    second approach of Wu, Lin and Weng, "Probability Estimates for Multi-class Classification by
    Pairwise Coupling", JMLR 5, 2004: the p with sum 1 that makes the sum of
    ``(pairs[j, i] * p[i] - pairs[i, j] * p[j])**2`` least, by its Algorithm 2. The steps and the
    tolerance are libsvm's, whose models these are.
    """
    rows, kind, count = pairs.shape[0], pairs.dtype, int(expect(pairs.shape[1], IntImm).value)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = ir_builder.create()
        given, p = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, rows, "n", kind="parallel") as n:
            row = _Row(ib, p, n, count, str(kind))
            row.start(given)
            row.measure()
            step = ib.allocate("int32", [1], "step")
            step[0] = op.const(0, "int32")
            is_far = op.greater_equal(row.error[0], row.number(TOLERANCE / count))
            with ib.while_loop(op.logical_and(is_far, op.less(step[0], STEPS))):
                row.move_all()
                row.measure()
                step[0] = step[0] + 1
        return ib.get()

    return extern(
        (rows, count), [pairs], body, name="couple_pairs", dtype=[kind],
        in_buffers=[decl_buffer(pairs.shape, kind, "pairs", data_alignment=8)],
        out_buffers=[decl_buffer((rows, count), kind, "p", data_alignment=8)],
    )  # fmt: skip


class _Row:
    """The statements for one row: its matrix Q, the products Q p, and p' Q p (``square``)."""

    def __init__(
        self, ib: ir_builder.IRBuilder, p: ir_builder.BufferVar, n: PrimExpr, count: int, kind: str
    ) -> None:
        self.ib, self.p, self.n, self.count, self.kind = ib, p, n, count, kind
        self.matrix = ib.allocate(kind, [count, count], "matrix")
        self.products = ib.allocate(kind, [count], "products")
        self.square = ib.allocate(kind, [1], "square")
        self.error = ib.allocate(kind, [1], "error")

    def number(self, value: float) -> PrimExpr:
        """A constant of the kernel's type."""
        return op.const(value, self.kind)

    def start(self, given: ir_builder.BufferVar) -> None:
        """Equal probabilities, and the matrix of the pairs."""
        ib, n, matrix = self.ib, self.n, self.matrix
        with ib.for_range(0, self.count, "t") as t:
            self.p[n, t] = self.number(1.0 / self.count)
            matrix[t, t] = self.number(0)
            with ib.for_range(0, self.count, "j") as j:
                with ib.if_scope(op.not_equal(j, t)):
                    matrix[t, t] = matrix[t, t] + given[n, j, t] * given[n, j, t]
                    matrix[t, j] = -(given[n, j, t] * given[n, t, j])

    def measure(self) -> None:
        """The products and the square anew; the error is the greatest distance between them."""
        ib, n, products, square = self.ib, self.n, self.products, self.square
        square[0] = self.number(0)
        with ib.for_range(0, self.count, "t") as t:
            products[t] = self.number(0)
            with ib.for_range(0, self.count, "j") as j:
                products[t] = products[t] + self.matrix[t, j] * self.p[n, j]
            square[0] = square[0] + self.p[n, t] * products[t]
        self.error[0] = self.number(0)
        with ib.for_range(0, self.count, "t") as t:
            self.error[0] = op.max(self.error[0], op.abs(products[t] - square[0]))

    def move_all(self) -> None:
        """Move each probability to where its own error is 0, and scale the sum back to 1."""
        ib, n, products, square = self.ib, self.n, self.products, self.square
        with ib.for_range(0, self.count, "t") as t:
            own = self.matrix[t, t]
            move = ib.let("move", (square[0] - products[t]) / own)
            scale = ib.let("scale", move + self.number(1))
            self.p[n, t] = self.p[n, t] + move
            gain = move * (move * own + self.number(2) * products[t])
            square[0] = (square[0] + gain) / (scale * scale)
            with ib.for_range(0, self.count, "j") as j:
                products[j] = (products[j] + move * self.matrix[t, j]) / scale
                self.p[n, j] = self.p[n, j] / scale
