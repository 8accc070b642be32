"""FlexAttention (Dong et al., 2024): attention whose scores and mask are functions of the user.

Both functions are graphs of scalars: of a score and of four indices, and of the indices alone. They
are run once, on whole tensors, since all that they may do works element by element:

    score + slope[head] * (key - query)    ->    score[B, H, Q, K] + slope[H] * (key[K] - query[Q])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.torch.complex_tensor import operator_name
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.operators.attention import scaled_dot_product_attention
from weft.relax.frontend.torch.operators.control_flow import handles
from weft.relax.frontend.torch.translate import GraphTranslator
from weft.relax.frontend.torch.values import Value
from weft.support.errors import UnsupportedError

_WIDE = ("float32", "float64")
_WHERE = ("aten.where.self", "aten.where.ScalarOther")
_ADDS = ("aten.add.Tensor", "aten.sub.Tensor")


class _ElementTranslator(GraphTranslator):
    """Runs a graph of scalars on tensors, which broadcast against each other."""

    def agreeing_part(self, node: fx.Node, result: Expr, fake: torch.Tensor) -> Expr:
        """The result of the data type that torch deduced; its shape is that of the tensors."""
        if fake.ndim:
            raise UnsupportedError(
                f"flex_attention: expected a function of scalars, got one that computes a tensor "
                f"of shape {tuple(fake.shape)} ({node.name}); index it down to one element"
            )
        context = self.context
        return context.emit(context.cast(context.emit(result), context.meta_of(fake)[1]))

    def results(self, graph: fx.GraphModule, inputs: Sequence[Value], nodes: list[fx.Node]) -> None:
        """Fill ``env`` with the values that some nodes of a graph need."""
        needed = _needed(nodes)
        remaining = iter(inputs)
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = next(remaining)
            elif node.op == "get_attr":
                self.env[node] = self.attribute(graph, node.target)
            elif node in needed:
                self.env[node] = self.call(node)


def _needed(nodes: list[fx.Node]) -> set[fx.Node]:
    needed: set[fx.Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    return needed


@dataclass(frozen=True)
class _Bias:
    """A score function that only adds to the score: what it adds, and where it gives -inf."""

    added: list[tuple[fx.Node, bool]]
    """(what is added, whether it is subtracted)."""
    allowed: list[fx.Node]
    """Where one of these is false, the score is -inf."""


def _bias_of(graph: fx.GraphModule) -> _Bias | None:
    """What a score function adds to the score; None if it does anything else with it."""
    score = next(node for node in graph.graph.nodes if node.op == "placeholder")
    bias, node = _Bias([], []), _output(graph)
    while node is not score:
        name, arguments = operator_name(node), list(node.args)
        rest: Value = None
        if name in _ADDS and not node.kwargs:
            rest, other = arguments
            swapped = name == _ADDS[0] and isinstance(other, fx.Node) and score in _needed([other])
            rest, other = (other, rest) if swapped else (rest, other)
            bias.added.append((other, name == _ADDS[1]))
        elif name in _WHERE and _is_lowest(arguments[2]):
            other, rest = arguments[:2]
            bias.allowed.append(other)
        else:
            return None
        if not (isinstance(other, fx.Node) and isinstance(rest, fx.Node)):
            return None
        if score in _needed([other]):
            return None
        node = rest
    return bias


def _output(graph: fx.GraphModule) -> fx.Node:
    [result] = next(node for node in graph.graph.nodes if node.op == "output").all_input_nodes
    return result


def _is_lowest(argument: object) -> bool:
    """Whether an argument is the constant -inf."""
    if not isinstance(argument, fx.Node):
        return argument == -math.inf
    names = ("aten.full.default", "aten.scalar_tensor.default")
    return (
        argument.op == "call_function"
        and operator_name(argument) in names
        and (-math.inf in argument.args)
    )


@dataclass(frozen=True)
class _Functions:
    """Both functions of a call, and what they are run on."""

    translator: GraphTranslator
    score: fx.GraphModule
    score_operands: list[Value]
    mask: fx.GraphModule
    mask_operands: list[Value]
    indices: list[Expr]

    def mask_value(self) -> Expr | None:
        """Which keys a query may look at: (batch or 1, heads or 1, queries or 1, keys or 1)."""
        if _is_full_of_true(self.mask):
            return None
        mask = self._inner().run(self.mask, [*self.indices, *self.mask_operands])
        return self._wide(expect(mask, Expr))

    def scores(self, products: Expr) -> Expr:
        """The function of the scores, of all of them."""
        scores = self._inner().run(self.score, [products, *self.indices, *self.score_operands])
        return self._wide(expect(scores, Expr))

    def terms(self, bias: _Bias, dtype: str) -> tuple[Expr | None, list[Expr]]:
        """(what is added to scores, where they are kept)."""
        inner, context = self._inner(), self.translator.context
        nodes = [*(node for node, _ in bias.added), *bias.allowed]
        inner.results(self.score, [None, *self.indices, *self.score_operands], nodes)
        total: Expr | None = None
        for node, is_subtracted in bias.added:
            term = context.cast(expect(inner.env[node], Expr), dtype)
            term = context.emit(op.negative(term)) if is_subtracted else term
            total = term if total is None else context.emit(op.add(total, term))
        allowed = [self._wide(expect(inner.env[node], Expr)) for node in bias.allowed]
        return None if total is None else self._wide(total), allowed

    def _inner(self) -> _ElementTranslator:
        outer = self.translator
        return _ElementTranslator(outer.builder, outer.symbols, outer.converters)

    def _wide(self, value: Expr) -> Expr:
        """A value with four axes."""
        context = self.translator.context
        dims = context.dims(value)
        if len(dims) == 4:
            return value
        return context.emit(op.reshape(value, [*[1] * (4 - len(dims)), *dims]))


def _is_full_of_true(graph: fx.GraphModule) -> bool:
    """Whether a mask allows everything: what ``create_block_mask`` writes where none is given."""
    result = _output(graph)
    return result.op == "call_function" and operator_name(result) in (
        "aten.full.default", "aten.ones.default", "aten.new_ones.default",
    ) and (operator_name(result) != "aten.full.default" or result.args[1] is True)  # fmt: skip


def _indices(context: Context, query: Expr, key: Expr) -> list[Expr]:
    """The numbers of batch, head, query and key, each along its axis of four."""
    batch, heads, queries, _ = context.dims(query)
    extents = [batch, heads, queries, context.dims(key)[2]]
    indices = []
    for axis, extent in enumerate(extents):
        numbers = context.emit(op.arange(extent, dtype="int32"))
        shape = [extent if other == axis else 1 for other in range(4)]
        indices.append(context.emit(op.reshape(numbers, shape)))
    return indices


def _listed(values: Value) -> list[Value]:
    return list(expect(values, list))


@handles("flex_attention")
def flex_attention(translator: GraphTranslator, node: fx.Node) -> Value:
    """(query, key, value, score function, block mask, scale, options, both functions' tensors).

    The result is attention, the logarithm of base 2 of each query's sum of exponentials, and each
    query's largest score. Blocks of the mask say nothing that its function does not.
    """
    context = translator.context
    context.node = node
    *inputs, score, block_mask, factor, _, of_score, of_mask = translator.arguments(node)
    query, key, value = (expect(each, Expr) for each in inputs)
    scale = expect(factor, float)
    functions = _Functions(
        translator, score, _listed(of_score), _listed(block_mask)[-1], _listed(of_mask),
        _indices(context, query, key),
    )  # fmt: skip
    mask, bias = functions.mask_value(), _bias_of(score)
    dtype = context.dtype_of(query)
    is_rounded = bias is not None and bias.added and dtype not in _WIDE
    if bias is None or is_rounded or context.is_read(1) or context.is_read(2):
        return translator.checked(node, _in_steps(functions, mask, (query, key, value), scale))
    added, allowed = functions.terms(bias, dtype)
    total = _additive(context, added, [*allowed, *([] if mask is None else [mask])], dtype)
    mixed = scaled_dot_product_attention(context, query, key, value, total, scale=scale)
    return translator.checked(node, [mixed, None, None])


def _additive(context: Context, added: Expr | None, masks: list[Expr], dtype: str) -> Expr | None:
    """One mask for all: of booleans, or what is added, -inf where nothing may be looked at."""
    allowed: Expr | None = None
    for mask in masks:
        allowed = mask if allowed is None else context.emit(op.logical_and(allowed, mask))
    if added is None or allowed is None:
        return allowed if added is None else added
    return context.emit(op.where(allowed, added, context.operand(-math.inf, dtype)))


def _in_steps(
    functions: _Functions, mask: Expr | None, inputs: tuple[Expr, Expr, Expr], scale: float
) -> list[Expr | None]:
    """The results that are read, by a product, the function of scores, a softmax and a product."""
    context, (query, key, value) = functions.translator.context, inputs
    dtype = context.dtype_of(query)
    exact = "float64" if dtype == "float64" else "float32"
    groups = _groups(context, query, key)
    if groups != 1:
        key, value = (context.emit(op.repeat(each, groups, 1)) for each in (key, value))
    transposed = context.emit(op.permute_dims(key, [0, 1, 3, 2]))
    products = context.emit(op.matmul(query, transposed, out_dtype=exact))
    scaled = context.emit(op.multiply(products, context.operand(scale, exact)))
    scores = context.cast(functions.scores(scaled), exact)
    lowest = context.operand(-math.inf, exact)
    if mask is not None:
        scores = context.emit(op.where(mask, scores, lowest))
    largest = context.emit(op.max(scores, [3], keepdims=True))
    sees = context.emit(op.greater(largest, lowest))
    zero = context.operand(0.0, exact)
    weights = context.emit(op.where(sees, op.nn.softmax(scores, 3), zero))
    mixed = context.emit(op.matmul(context.cast(weights, dtype), value))
    if not context.is_read(1):
        return [mixed, None, context.emit(op.squeeze(largest, [3]))]
    shift = context.emit(op.where(sees, largest, zero))
    sums = context.emit(op.sum(op.exp(op.subtract(scores, shift)), [3], keepdims=True))
    logarithms = op.add(op.log(sums), shift)
    by_two = op.multiply(logarithms, context.operand(1 / math.log(2), exact))
    return [mixed, *(context.emit(op.squeeze(each, [3])) for each in (by_two, largest))]


def _groups(context: Context, query: Expr, key: Expr) -> int:
    """How many heads of queries share one of keys."""
    heads, shared = context.dims(query)[1], context.dims(key)[1]
    return expect(heads, int) // expect(shared, int)
