"""MultiplyByReciprocal: a softmax multiplies by the reciprocal of a row's sum instead of dividing.

Before: ``y[i, j] = p[i, j] / total[i]``. After: ``y[i, j] = p[i, j] * (1 / total[i])``. Code
generation computes the reciprocal once a row; a division of vectors takes as long as sixteen
products. It costs one more rounding. The pass requires that ``total`` is the sum of
``exp(x - largest)`` over a row whose maximum is ``largest``. Such a sum is at least one, so its
reciprocal is a normal number (or NaN, as the quotient would be). It runs while the function still
has blocks.
"""

from __future__ import annotations

from weft.ir.functor import Mutator, collect
from weft.ir.op import Op
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Add, Call, Cast, Div, Max, Sub
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore
from weft.tir.transform.prim_func_pass import define_pass, rewrite_body


class Values:
    """The blocks of a function that store a single value, by the buffer they store it to."""

    def __init__(self, func: PrimFunc) -> None:
        self.blocks: dict[Buffer, Block] = {}
        stored: list[Buffer] = []
        for block in collect(func.body, Block):
            if isinstance(block.body, BufferStore):
                self.blocks[block.body.buffer] = block
            stored += [] if block.name_hint == "root" else _stores(block)
        self.once = {buffer for buffer in stored if stored.count(buffer) == 1}

    def store(self, buffer: Buffer) -> BufferStore | None:
        """The store to a buffer, without that of ``init``; None if there is more than one."""
        block = self.blocks.get(buffer)
        body = None if block is None or buffer not in self.once else block.body
        return body if isinstance(body, BufferStore) else None

    def accumulated(self, buffer: Buffer, kind: type[Add | Max]) -> BufferLoad | None:
        """The load that a reduction by ``kind`` accumulates in a buffer; None for other forms."""
        block, store = self.blocks.get(buffer), self.store(buffer)
        if block is None or store is None or block.init is None:
            return None
        value = store.value
        if not isinstance(value, (Add, Max)) or not isinstance(value, kind):
            return None
        held, new = value.a, value.b
        own = isinstance(held, BufferLoad) and held.buffer is buffer
        return new if own and isinstance(new, BufferLoad) else None

    def softmax_of(self, total: Buffer) -> tuple[Buffer, Buffer] | None:
        """The buffers of powers and of largest elements, if ``total`` holds a softmax's sums."""
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
    """The operand of a cast; any other expression itself."""
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
    """Make the softmaxes of a function multiply by reciprocals."""
    if not collect(func.body, Div):
        return func
    return rewrite_body(func, _Multiply(Values(func)))


MultiplyByReciprocal = define_pass("MultiplyByReciprocal", multiply_by_reciprocal)
