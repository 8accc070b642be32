"""MultiplyByReciprocal: what a softmax divides by the sum of a row is multiplied by one over it.

Before: ``y[i, j] = p[i, j] / total[i]``. After: ``y[i, j] = p[i, j] * (1 / total[i])``, whose
second factor code generation computes once a row: a division of vectors takes as long as sixteen
products. It costs one more rounding. Only where ``total`` is the sum of ``exp(x - largest)`` over
the row of which ``largest`` is the maximum: such a sum is at least one, so that one over it is a
normal number, or NaN, as the quotient is. Needs blocks.
"""

from __future__ import annotations

from weft.ir.functor import Mutator, collect
from weft.ir.op import Op
from weft.ir.transform import Pass
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Call, Cast, Div, Max, Sub
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore
from weft.tir.transform.prim_func_pass import make_pass, rewrite_body


class Values:
    """The blocks that store one value, by the buffer they store to."""

    def __init__(self, func: PrimFunc) -> None:
        self.blocks: dict[Buffer, Block] = {}
        stored: list[Buffer] = []
        for block in collect(func.body, Block):
            if isinstance(block.body, BufferStore):
                self.blocks[block.body.buffer] = block
            stored += [] if block.name_hint == "root" else _stores(block)
        self.once = {buffer for buffer in stored if stored.count(buffer) == 1}

    def store(self, buffer: Buffer) -> BufferStore | None:
        """The only store to a buffer outside of ``init``."""
        block = self.blocks.get(buffer)
        body = None if block is None or buffer not in self.once else block.body
        return body if isinstance(body, BufferStore) else None

    def accumulated(self, buffer: Buffer, kind: type[Add | Max]) -> BufferLoad | None:
        """What a reduction by Add or Max accumulates in a buffer, if that is a plain element."""
        block, store = self.blocks.get(buffer), self.store(buffer)
        if block is None or store is None or block.init is None:
            return None
        value = store.value
        if not isinstance(value, Add | Max) or not isinstance(value, kind):
            return None
        held, new = value.a, value.b
        own = isinstance(held, BufferLoad) and held.buffer is buffer
        return new if own and isinstance(new, BufferLoad) else None

    def softmax_of(self, total: Buffer) -> tuple[Buffer, Buffer] | None:
        """Where a buffer holds the sums of a softmax: the powers, and the largest elements."""
        power = self.accumulated(total, Add)
        powers = None if power is None else self.store(power.buffer)
        exp = None if powers is None else powers.value
        if not isinstance(exp, Call) or not isinstance(exp.op, Op) or exp.op.name != "tir.exp":
            return None
        shifted = exp.args[0]
        if not isinstance(shifted, Sub):
            return None
        x, top = [uncast(part) for part in (shifted.a, shifted.b)]
        if not isinstance(x, BufferLoad) or not isinstance(top, BufferLoad):
            return None
        seen = self.accumulated(top.buffer, Max)
        if power is None or seen is None or seen.buffer is not x.buffer:
            return None
        return power.buffer, top.buffer


def _stores(block: Block) -> list[Buffer]:
    return [store.buffer for store in collect(block.body, BufferStore)]


def uncast(expr: object) -> object:
    """What a cast is of; other expressions as they are."""
    return expr.value if isinstance(expr, Cast) else expr


class _Multiply(Mutator):
    def __init__(self, values: Values) -> None:
        super().__init__()
        self.values = values

    def visit_Div(self, expr: Div) -> object:
        total = expr.b
        if not isinstance(total, BufferLoad) or expr.dtype.element != "float32":
            return self.visit_default(expr)
        if self.values.softmax_of(total.buffer) is None:
            return self.visit_default(expr)
        return op.multiply(self.visit(expr.a), op.div(op.const(1, total.dtype), total))


def multiply_by_reciprocal(func: PrimFunc) -> PrimFunc:
    """The function with the sums of its softmaxes divided into one."""
    if not collect(func.body, Div):
        return func
    return rewrite_body(func, _Multiply(Values(func)))


def MultiplyByReciprocal() -> Pass:  # noqa: N802 - named as its neighbours are
    """The pass ``tir.MultiplyByReciprocal``."""
    return make_pass("MultiplyByReciprocal", multiply_by_reciprocal)
