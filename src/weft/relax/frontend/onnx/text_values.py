"""Text inside of a graph: which operators pass it on, and what the others are told.

An operator that only moves elements gets the places of texts in their table instead, and its result
is text of the same table. Every other operator would compute with the places, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.node import expect
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.value import GraphValue, MapValue, TextValue, Value

MOVES: Final = frozenset({
    "ArrayFeatureExtractor", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice",
    "Squeeze", "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators whose first input may be text: their result has the same elements, elsewhere."""
TAKES: Final = frozenset({"Cast", "LabelEncoder", "StringNormalizer", "ZipMap"})
"""Operators whose converters look at text themselves."""


def places_of_texts(
    context: Context, name: str, inputs: Sequence[GraphValue | None]
) -> Sequence[GraphValue | None]:
    """The inputs for the converter of an operator: where it moves text, the places of the texts.

    Raises OnnxNodeError for text and dicts that the operator cannot pass on.
    """
    if not any(isinstance(value, TextValue | MapValue) for value in inputs) or name in TAKES:
        return inputs
    first, *others = inputs
    is_moved = isinstance(first, TextValue) and name in MOVES
    if not is_moved or any(isinstance(value, TextValue | MapValue) for value in others):
        context.fail(
            "text and dicts can only pass through to the outputs of the model: expected numbers; "
            "compute with the numbers of the classes and look the texts up afterwards"
        )
    return [expect(first, TextValue).index, *others]


def with_texts(
    name: str, inputs: Sequence[GraphValue | None], results: list[GraphValue | None]
) -> list[GraphValue | None]:
    """The results of a converter: where it moved places of texts, the texts there."""
    first = inputs[0] if inputs else None
    if name not in MOVES or not isinstance(first, TextValue):
        return results
    return [TextValue(expect(result, Value), first.texts) for result in results]
