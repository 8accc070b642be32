"""TfIdfVectorizer: how often each n-gram of a pool stands in a row, of integers or of texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr, StringImm
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.text_values import places_of, table_of, text_places
from weft.relax.frontend.onnx.value import Array, TextValue, Value
from weft.relax.struct_info import TensorStructInfo
from weft.runtime import ngrams

Pools: TypeAlias = dict[int, tuple[Array, list[int]]]
"""Size of n-grams -> the n-grams (count, size), and the columns they are counted in."""
KERNEL: Final = 1 << 16
"""Where n-grams times columns are more, no kernel compares each window with each n-gram."""


@converter("TfIdfVectorizer", since=9)
def tf_idf(
    context: Context,
    x: Value | TextValue,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: Sequence[int],
    ngram_indexes: Sequence[int],
    pool_int64s: Sequence[int] | None = None,
    pool_strings: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Expr:
    """Counts of n-grams of min .. max elements, which may stand up to max_skip_count apart.

    Mode TF counts, IDF gives the weight of those that are there, TFIDF counts times weights.
    """
    if isinstance(x, TextValue):
        words = np.array(pool_strings or (), np.str_)
        pool_int64s = places_of(words, table_of(context).texts).tolist()
        x = text_places(context, x)
    if not pool_int64s:
        context.fail("expected a pool of n-grams of the type of the input, found none")
    if mode not in ("TF", "IDF", "TFIDF"):
        context.fail(f"mode: expected TF, IDF or TFIDF, got {mode!r}")
    emit = context.emit
    flat = context.rank(x, "X") == 1
    data = emit(op.expand_dims(x.expr, [0])) if flat else x.expr
    width = max(ngram_indexes) + 1
    factors = np.ones(width, "float32") if weights is None or mode == "TF" else np.zeros(width)
    if weights is not None and mode != "TF":
        factors[list(ngram_indexes)] = weights
    pools = {
        size: pool
        for size, pool in _pools(ngram_counts, ngram_indexes, pool_int64s).items()
        if min_gram_length <= size <= max_gram_length
    }
    extent = context.shape(x, "X")[-1]
    if isinstance(extent, int) and len(pool_int64s) * width <= KERNEL:
        counts = _counted(context, data, (pools, width), (extent, max_skip_count))
    else:
        counts = _counted_by_library(context, data, (pools, width), max_skip_count)
    if mode == "IDF":
        zero = context.constant(0, "float32").expr
        counts = emit(op.astype(emit(op.greater(counts, zero)), "float32"))
    weighted = emit(op.multiply(counts, context.constant(factors.astype("float32")).expr))
    return emit(op.squeeze(weighted, [0])) if flat else weighted


def _counted(
    context: Context, data: Expr, pools: tuple[Pools, int], places: tuple[int, int]
) -> Expr:
    """The counts by comparing each window with each n-gram; ``places``: extent, skipped at most."""
    (by_size, width), (extent, skips) = pools, places
    emit = context.emit
    counts: Expr | None = None
    for size, (grams, columns) in by_size.items():
        for skip in range(skips + 1 if size > 1 else 1):
            matches = _matches(context, data, grams, (extent, skip + 1))
            if matches is not None:
                placed = np.zeros((len(columns), width), "float32")
                placed[np.arange(len(columns)), columns] = 1
                part = emit(op.matmul(matches, context.constant(placed).expr))
                counts = part if counts is None else emit(op.add(counts, part))
    if counts is None:
        rows = context.shape(context.value(data), "X")[0]
        counts = emit(op.full([rows, width], context.constant(0, "float32").expr, "float32"))
    return counts


def _counted_by_library(context: Context, data: Expr, pools: tuple[Pools, int], skips: int) -> Expr:
    """The counts by a function of numpy when the program runs."""
    by_size, width = pools
    tables = [(grams.tolist(), list(columns)) for grams, columns in by_size.values()]
    description = json.dumps({"pools": tables, "width": width, "skips": skips})
    rows = context.shape(context.value(data), "X")[0]
    kind = TensorStructInfo([rows, width], "float32")
    call = op.call_pure_packed(ngrams.COUNT, data, StringImm(description), sinfo_args=kind)
    return context.emit(call)


def _pools(starts: Sequence[int], indexes: Sequence[int], pool: Sequence[int]) -> Pools:
    """For each size of n-grams the n-grams (count, size) and the columns they are counted in."""
    pools: Pools = {}
    column = 0
    for index, start in enumerate(starts):
        size = index + 1
        end = starts[index + 1] if index + 1 < len(starts) else len(pool)
        grams = np.array(pool[start:end], "int64").reshape(-1, size)
        if len(grams):
            pools[size] = (grams, list(indexes[column : column + len(grams)]))
        column += len(grams)
    return pools


def _matches(context: Context, data: Expr, grams: Array, places: tuple[int, int]) -> Expr | None:
    """How often each n-gram stands in each row with ``step`` between its elements."""
    extent, step = places
    size = grams.shape[1]
    count = extent - (size - 1) * step
    if count <= 0:
        return None
    emit = context.emit
    hit: Expr | None = None
    for position in range(size):
        part = emit(op.strided_slice(data, [1], [position * step], [position * step + count]))
        wide = emit(op.expand_dims(emit(op.astype(part, "int64")), [2]))
        same = emit(op.equal(wide, context.constant(grams[:, position]).expr))
        hit = same if hit is None else emit(op.logical_and(hit, same))
    return emit(op.sum(emit(op.astype(hit, "float32")), [1]))
