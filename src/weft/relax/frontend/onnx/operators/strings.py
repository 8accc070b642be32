"""Operators of text: strings joined, split, matched, cleaned, cut into tokens, looked up."""

from __future__ import annotations

import json
from collections.abc import Sequence

from weft.relax import op
from weft.relax.expr import PrimValue, StringImm
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.operators.ml_features import encoded
from weft.relax.frontend.onnx.operators.ml_scores import ML
from weft.relax.frontend.onnx.patterns import check_pattern
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.text_values import call_library, table_of, text_places
from weft.relax.frontend.onnx.value import TextValue, Value
from weft.relax.ir.shape_arith import broadcast_extents
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.runtime import texts

MICROSOFT = "com.microsoft"


@converter("StringConcat", since=20)
def string_concat(context: Context, x: Value | TextValue, y: Value | TextValue) -> TextValue:
    """Texts of x, each followed by that of y; shapes are broadcast."""
    first, second = text_places(context, x), text_places(context, y)
    shapes = [context.shape(value, "X or Y") for value in (first, second)]
    joint = broadcast_extents(*shapes)
    if isinstance(joint, str):
        context.fail(f"the shapes of X and Y do not broadcast: {joint}")
    dims = [context.new_dim("size") if dim is None else dim for dim in joint]
    pair = [first.expr, second.expr]
    return _text(context, call_library(context, texts.CONCAT, pair, [], (dims, "int64")))


@converter("StringSplit", since=20)
def string_split(
    context: Context, x: Value | TextValue, *, delimiter: str = "", maxsplit: int = -1
) -> list[TextValue | Value]:
    """The parts of texts along a new axis, and how many there are."""
    places = text_places(context, x)
    dims = context.shape(places, "X")
    kinds = [TensorStructInfo(None, "int64", ndim=len(dims) + more) for more in (1, 0)]
    call = op.call_pure_packed(
        texts.SPLIT, table_of(context).expr, places.expr, StringImm(delimiter),
        PrimValue(maxsplit), sinfo_args=TupleStructInfo(kinds),
    )  # fmt: skip
    both = context.builder.emit(call)
    parts, counts = [context.builder.emit(both[index]) for index in range(2)]
    width = context.new_dim("parts")
    return [
        _text(context, context.value(context.matched(parts, [*dims, width]))),
        context.value(context.matched(counts, dims)),
    ]


@converter("RegexFullMatch", since=20)
def regex_full_match(context: Context, x: Value | TextValue, *, pattern: str) -> Value:
    """Whether a whole text matches a regular expression of RE2's syntax."""
    check_pattern(context, "pattern", pattern)
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
        check_pattern(context, "separators or tokenexp", text)
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
