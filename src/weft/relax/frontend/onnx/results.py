"""Values that leave a block: as one expression, what two blocks must agree in, and back."""

from __future__ import annotations

from typing import TypeAlias

from weft.relax.expr import Expr, Tuple
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.errors import OnnxNodeError
from weft.relax.frontend.onnx.run_sequences import joint_dims, joint_type, visible
from weft.relax.frontend.onnx.value import (
    GraphValue,
    MapValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    TextTable,
    TextValue,
    Value,
)

Structure: TypeAlias = tuple["Structure | str | int | None", ...]
"""What branches of a choice must agree in."""


def flat_expr(value: GraphValue | None) -> Expr:
    """A value as one expression: sequences and optionals are tuples."""
    if value is None:
        raise OnnxNodeError("an output of a graph is left out by its node")
    if isinstance(value, SequenceValue):
        return Tuple([flat_expr(item) for item in value.items])
    if isinstance(value, OptionalValue):
        return Tuple([]) if value.content is None else flat_expr(value.content)
    if isinstance(value, TextValue):
        return value.index.expr
    return value.rows.expr if isinstance(value, MapValue) else value.expr


def joint_value(context: Context, first: GraphValue, second: GraphValue) -> GraphValue:
    """What is known of a value that is one of two of the same structure."""
    if isinstance(first, RunSequence) and isinstance(second, RunSequence):
        elem = joint_type(context, first.elem, second.elem)
        dims = visible(context, joint_dims(context, first.dims, second.dims))
        return RunSequence(first.expr, elem, dims, first.sources)
    return first


def structure(value: GraphValue) -> Structure:
    """What both branches must agree in: kinds, numbers of items, element types, ranks."""
    if isinstance(value, SequenceValue):
        return ("sequence", *[structure(item) for item in value.items])
    if isinstance(value, RunSequence):
        return ("sequence of the run",)
    if isinstance(value, OptionalValue):
        content = [] if value.content is None else [structure(value.content)]
        return ("optional", *content)
    if isinstance(value, TextValue):
        texts = ("text of inputs",) if isinstance(value.texts, TextTable) else value.texts
        return ("text", *texts, value.index.rank)
    if isinstance(value, MapValue):
        return ("map", *value.keys)
    return (value.elem, value.rank)


def rebuilt(context: Context, expr: Expr, like: GraphValue) -> GraphValue:
    """The value of an expression that has the structure of ``like``."""
    if isinstance(like, SequenceValue):
        items = [
            rebuilt(context, context.emit(expr[index]), item)
            for index, item in enumerate(like.items)
        ]
        return SequenceValue(items, like.elem, like.sources)
    if isinstance(like, RunSequence):
        return RunSequence(expr, like.elem, like.dims, like.sources)
    if isinstance(like, OptionalValue):
        content = None if like.content is None else rebuilt(context, expr, like.content)
        return OptionalValue(content, like.sources)
    if isinstance(like, TextValue):
        return TextValue(Value(context.builder, expr, None, None, like.sources), like.texts)
    if isinstance(like, MapValue):
        return MapValue(Value(context.builder, expr, None, None, like.sources), like.keys)
    return Value(context.builder, expr, None, like.elem, like.sources)


def all_rebuilt(
    context: Context, expr: Expr, firsts: list[GraphValue], seconds: list[GraphValue]
) -> list[GraphValue | None]:
    """The values of an expression that is one value of two blocks, or the tuple of several."""
    pairs = zip(firsts, seconds, strict=True)
    likes = [joint_value(context, first, second) for first, second in pairs]
    if len(likes) == 1:
        return [rebuilt(context, expr, likes[0])]
    return [rebuilt(context, context.emit(expr[index]), like) for index, like in enumerate(likes)]
