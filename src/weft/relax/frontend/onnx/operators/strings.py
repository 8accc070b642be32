"""Operators of text: strings joined, split, matched, cleaned, cut into tokens, looked up."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from weft.relax import op
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.ml_features import encoded
from weft.relax.frontend.onnx.operators.ml_scores import ML
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.text_values import call_library, table_of, text_places
from weft.relax.frontend.onnx.value import TextValue, Value
from weft.runtime import texts

MICROSOFT = "com.microsoft"


@converter("StringConcat", since=20)
def string_concat(context: Context, x: Value | TextValue, y: Value | TextValue) -> TextValue:
    """Texts of x, each followed by that of y; shapes are broadcast."""
    first, second = text_places(context, x), text_places(context, y)
    zero = context.constant(0, "int64").expr
    nothing = [context.emit(op.multiply(value.expr, zero)) for value in (second, first)]
    pair = [
        context.emit(op.add(value.expr, shape))
        for value, shape in zip((first, second), nothing, strict=True)
    ]
    dims = context.shape(context.value(pair[0]), "X")
    return _text(context, call_library(context, texts.CONCAT, pair, [], (dims, "int64")))


@converter("StringSplit", since=20)
def string_split(
    context: Context, x: Value | TextValue, *, delimiter: str = "", maxsplit: int = -1
) -> list[TextValue | Value]:
    """The parts of texts along a new axis, and how many there are."""
    places = text_places(context, x)
    dims = context.shape(places, "X")
    options: list[str | int] = [delimiter, maxsplit]
    width = context.new_dim("parts")
    parts = call_library(context, texts.SPLIT, [places.expr], options, ([*dims, width], "int64"))
    counts = call_library(context, texts.SPLIT_COUNTS, [places.expr], options, (dims, "int64"))
    return [_text(context, parts), counts]


@converter("RegexFullMatch", since=20)
def regex_full_match(context: Context, x: Value | TextValue, *, pattern: str) -> Value:
    """Whether a whole text matches a regular expression of RE2's syntax."""
    _check_pattern(context, "pattern", pattern)
    places = text_places(context, x)
    dims = context.shape(places, "X")
    return call_library(context, texts.FULL_MATCH, [places.expr], [pattern], (dims, "bool"))


@converter("StringNormalizer", since=10)
def string_normalizer(
    context: Context,
    x: Value | TextValue,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] | None = None,
) -> TextValue:
    """A row of texts without stop words, in lower or upper case."""
    del locale  # Python's rules are the same in all
    if case_change_action not in ("NONE", "LOWER", "UPPER"):
        context.fail(f"case_change_action: expected NONE, LOWER or UPPER, got {case_change_action}")
    places = text_places(context, x)
    rank = context.rank(places, "X")
    if rank not in (1, 2):
        context.fail(f"X: expected a vector, or a matrix of one row, got {rank} dimensions")
    dims = [*context.shape(places, "X")[:-1], context.new_dim("kept")]
    words = json.dumps(list(stopwords or ()))
    options: list[str | int] = [case_change_action, words, is_case_sensitive]
    kept = call_library(context, texts.NORMALIZE, [places.expr], options, (dims, "int64"))
    return _text(context, kept)


@converter("Tokenizer", domain=MICROSOFT)
def tokenizer(
    context: Context,
    x: Value | TextValue,
    *,
    mark: int,
    mincharnum: int,
    pad_value: str,
    separators: Sequence[str] | None = None,
    tokenexp: str = "",
) -> TextValue:
    """The tokens of texts along a new axis: what an expression matches, or between separators."""
    if bool(separators) == bool(tokenexp):
        context.fail("expected either separators or tokenexp")
    for text in [*(separators or ()), tokenexp]:
        _check_pattern(context, "separators or tokenexp", text)
    description = {
        "pattern": tokenexp,
        "separators": list(separators or ()),
        "shortest": mincharnum,
        "marked": bool(mark),
        "pad": pad_value,
    }
    places = text_places(context, x)
    dims = [*context.shape(places, "X"), context.new_dim("tokens")]
    options = [json.dumps(description)]
    cut = call_library(context, texts.TOKENIZE, [places.expr], options, (dims, "int64"))
    return _text(context, cut)


@converter("CategoryMapper", domain=ML)
def category_mapper(
    context: Context,
    x: Value | TextValue,
    *,
    cats_int64s: Sequence[int],
    cats_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value | TextValue:
    """Texts to the numbers beside them, or numbers to texts."""
    if len(cats_int64s) != len(cats_strings):
        context.fail(
            f"expected as many numbers as texts, got {len(cats_int64s)} and {len(cats_strings)}"
        )
    if isinstance(x, TextValue):
        return encoded(context, x, list(cats_strings), list(cats_int64s), default_int64)
    return encoded(context, x, list(cats_int64s), list(cats_strings), default_string)


def _text(context: Context, places: Value) -> TextValue:
    return TextValue(places, table_of(context))


def _check_pattern(context: Context, what: str, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        context.fail(f"{what}: expected a regular expression, got {pattern!r:.60}: {error}")
