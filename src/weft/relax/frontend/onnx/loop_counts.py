"""How many steps a loop has whose condition only counts them.

A ``while i < n`` of TensorFlow is a Loop that carries ``i`` and says ``i + 1 < n`` at the end of
each step. Where ``n`` is a number or an extent, so is the number of steps, the condition need not
be computed, and what is scanned out has a known shape. The nodes that the condition needs are
translated with a symbol for the step, and one for each carried number that they read; such a number
must change by the same amount in each step. What the condition then says of these symbols is
proved for all steps but the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.arith.conjunction import conjuncts
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions, substitute
from weft.relax.frontend.onnx.blocks import opened_block
from weft.relax.frontend.onnx.checks import sub_graphs
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import INT64
from weft.relax.frontend.onnx.node_order import in_order
from weft.relax.frontend.onnx.protos import GraphProto, NodeProto
from weft.relax.frontend.onnx.tensors import tensor_array
from weft.relax.frontend.onnx.value import Dim, GraphValue, Value, as_prim, plain_dim
from weft.support.errors import TVMError
from weft.tir import op
from weft.tir.expr import GE, GT, LE, LT, SizeVar, Var


def counted_steps(
    context: Context,
    limit: Value | None,
    condition: Value | None,
    carried: Sequence[GraphValue | None],
    body: GraphProto,
) -> Dim | None:
    """The number of steps of a Loop, where its condition ends it after so many; else None."""
    most = None if limit is None else _number(limit)
    if limit is not None and most is None:
        return None
    try:
        with opened_block(context.builder):
            again = _Counting(context, body, carried).claim()
    except TVMError:  # of a node that takes no symbols: the loop is translated as it is
        return None
    if again is None:
        return None
    step, holds = again
    begins = _claim(condition) if condition is not None else IntImm("bool", 1)
    if begins is None:
        return None
    bounds = [most] if most is not None else list(_first_that_fails(holds, step))
    for bound in bounds:
        if _holds_until(bound, step, holds) and _begins(bound, begins, exactly=most is None):
            return plain_dim(Analyzer().simplify(op.max(bound, IntImm("int64", 0))))
    return None


def _number(value: Value) -> PrimExpr | None:
    """The one element of a value as a known int64 expression."""
    if value.known is None or value.known.size != 1:
        return None
    item = value.known.ravel().tolist()[0]
    is_number = isinstance(item, int | PrimExpr) and not isinstance(item, bool)
    return as_prim(item) if is_number else None


def _claim(value: Value) -> PrimExpr | None:
    """What a condition says of symbols."""
    if value.constant is not None and value.constant.size == 1:
        return IntImm("bool", int(value.constant.ravel()[0]))
    return value.claim


@dataclass
class _Counting:
    """The nodes of a body that its condition needs, on symbols."""

    context: Context
    body: GraphProto
    carried: Sequence[GraphValue | None]
    counters: dict[int, Var] = field(default_factory=dict)
    """The number of a carried value that is a number -> the symbol that stands for it."""

    def claim(self) -> tuple[Var, PrimExpr] | None:
        """The symbol of the step, and what the condition says of it at the end of the step."""
        nodes, read = self._needed()
        step, states = SizeVar("step", "int64"), [value.name for value in self.body.input[2:]]
        scope, outputs = self.context.scope.inner(), [value.name for value in self.body.output]
        scope.set(self.body.input[0].name, self._symbol(step, (), INT64))
        going = Value(self.context.builder, None, np.array(True))  # else there were no such step
        scope.set(self.body.input[1].name, going)
        for index, (name, value) in enumerate(zip(states, self.carried, strict=True)):
            if name in read:
                counter = self._counter(index, value)
                if counter is None:
                    return None
                scope.set(name, counter)
        for tensor in self.body.initializer:
            if tensor.name in read:
                scope.set(tensor.name, Value(self.context.builder, None, tensor_array(tensor)))
        wanted = [outputs[0], *[outputs[1 + index] for index in self.counters]]
        self.context.translator.nodes(nodes, scope, wanted)
        now: dict[Var, PrimExpr] = {}
        for index, symbol in self.counters.items():
            number = self._after(step, index, symbol, scope.get(outputs[1 + index]))
            if number is None:
                return None
            now[symbol] = number
        again = scope.get(outputs[0])
        holds = _claim(again) if isinstance(again, Value) else None
        return None if holds is None else (step, substitute(holds, now))

    def _needed(self) -> tuple[list[NodeProto], set[str]]:
        """The nodes that the condition and the numbers that it reads need, and all names read."""
        states = [value.name for value in self.body.input[2:]]
        outputs = [value.name for value in self.body.output]
        read, kept, nodes = {outputs[0]}, list[NodeProto](), in_order(self.body.node)
        before = -1
        while before < len(read):
            before, kept = len(read), []
            read |= {outputs[1 + at] for at, name in enumerate(states) if name in read}
            for node in reversed(nodes):
                if read.intersection(node.output):
                    if any(True for _ in sub_graphs(node)):
                        self.context.fail("its condition has branches")
                    kept.append(node)
                    read |= set(node.input)
        return kept[::-1], read

    def _symbol(self, symbol: Var, shape: tuple[int, ...], elem: int | None) -> Value:
        known = np.empty(shape, object)
        known[...] = symbol
        return Value(self.context.builder, None, known, elem)

    def _counter(self, index: int, value: GraphValue | None) -> Value | None:
        """A carried number as a symbol; None where it is none that is known before the loop."""
        if not isinstance(value, Value) or value.known is None or _number(value) is None:
            return None
        self.counters[index] = Var(f"counter{index}", "int64")
        return self._symbol(self.counters[index], value.known.shape, value.elem)

    def _after(
        self, step: Var, index: int, symbol: Var, after: GraphValue | None
    ) -> PrimExpr | None:
        """A number in step ``step``, if it changes by the same amount in each."""
        first = self.carried[index]
        begin = _number(first) if isinstance(first, Value) else None
        end = _number(after) if isinstance(after, Value) else None
        if begin is None or end is None:
            return None
        change = Analyzer().simplify(end - symbol)
        return begin + change * step if isinstance(change, IntImm) else None


def _first_that_fails(claim: PrimExpr, step: Var) -> Iterator[PrimExpr]:
    """For each comparison that grows with the step: how many steps there are until it fails."""
    for part in conjuncts(claim):
        if isinstance(part, LT | LE):
            low, high, more = part.a, part.b, int(isinstance(part, LE))
        elif isinstance(part, GT | GE):
            low, high, more = part.b, part.a, int(isinstance(part, GE))
        else:
            continue
        count = Analyzer().simplify(high - low + step + (1 + more))
        if not mentions(count, step):
            yield count


def _holds_until(bound: PrimExpr, step: Var, claim: PrimExpr) -> bool:
    """Whether the claim holds at the end of steps 0 to ``bound - 2``, after which another comes."""
    left = SizeVar("left", "int64")
    from_end = {step: bound - 2 - left}
    return all(
        Analyzer().can_prove(part) or Analyzer().can_prove(substitute(part, from_end))
        for part in conjuncts(claim)
    )


def _begins(bound: PrimExpr, claim: PrimExpr, exactly: bool) -> bool:
    """Whether the loop begins where the bound is positive, and, if ``exactly``, only there."""
    positive, analyzer = bound >= 1, Analyzer()
    with analyzer.constraint_scope(positive):
        if not all(analyzer.can_prove(part) for part in conjuncts(claim)):
            return False
    if not exactly:
        return True
    other = Analyzer()
    with other.constraint_scope(op.logical_not(positive)):
        return other.can_prove(op.logical_not(claim))
