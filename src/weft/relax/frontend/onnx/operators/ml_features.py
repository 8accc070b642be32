"""ai.onnx.ml: what prepares features, and what gives results their form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import STRING
from weft.relax.frontend.onnx.operators.ml_scores import ML, class_names
from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Array, MapValue, TextTable, TextValue, Value


def as_rows(context: Context, x: Value) -> Expr:
    """A matrix of features: a vector is one row."""
    rank = context.rank(x, "X")
    if rank not in (1, 2):
        context.fail(f"X: expected a vector or a matrix, got {rank} dimensions")
    return x.expr if rank == 2 else context.emit(op.expand_dims(x.expr, [0]))


@converter("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(context: Context, x: Value, places: Value) -> Value | TextValue:
    """Elements at places of the last axis; of a constant of texts, the texts there."""
    index = context.emit(op.reshape(context.as_type(places.expr, "int64"), [-1]))
    table = x.constant if x.elem == STRING else None
    source = x.expr if table is None else context.constant(_numbers(table)).expr
    rank = context.rank(x, "X")
    taken = context.emit(op.take(source, index, rank - 1))
    if rank == 1:
        taken = context.emit(op.expand_dims(taken, [0]))
    if table is None:
        return context.value(taken, x.elem)
    return TextValue(context.value(taken), [str(item) for item in table.ravel()])


def _numbers(table: Array) -> Array:
    return np.arange(table.size, dtype="int64").reshape(table.shape)


@converter("Binarizer", domain=ML)
def binarizer(context: Context, x: Value, *, threshold: float = 0.0) -> Expr:
    """1 where an element is above the threshold, else 0."""
    above = context.emit(op.greater(x.expr, context.constant(threshold, x.dtype).expr))
    return context.emit(op.astype(above, x.dtype))


@converter("Scaler", domain=ML)
def scaler(
    context: Context,
    x: Value,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
) -> Expr:
    """(x - offset) * scale, by feature."""
    emit, data = context.emit, context.as_type(x.expr, "float32")
    if offset:
        data = emit(op.subtract(data, context.constant(np.array(offset, "float32")).expr))
    if scale:
        data = emit(op.multiply(data, context.constant(np.array(scale, "float32")).expr))
    return data


@converter("Normalizer", domain=ML)
def normalizer(context: Context, x: Value, *, norm: str = "MAX") -> Expr:
    """Rows divided by their norm; a row whose norm is 0 stays as it is."""
    emit = context.emit
    data = context.as_type(x.expr, "float32")
    axis = [context.rank(x, "X") - 1]
    if norm == "MAX":
        size = emit(op.max(data, axis, keepdims=True))
    elif norm == "L1":
        size = emit(op.sum(emit(op.abs(data)), axis, keepdims=True))
    elif norm == "L2":
        squares = emit(op.sum(emit(op.multiply(data, data)), axis, keepdims=True))
        size = emit(op.sqrt(squares))
    else:
        context.fail(f"norm: expected MAX, L1 or L2, got {norm!r}")
    is_zero = emit(op.equal(size, context.constant(0.0, "float32").expr))
    divisor = emit(op.where(is_zero, context.constant(1.0, "float32").expr, size))
    return emit(op.divide(data, divisor))


@converter("Imputer", domain=ML)
def imputer(
    context: Context,
    x: Value,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Expr:
    """Values of features in the place of those that stand for a missing one (NaN, for one)."""
    is_float = x.dtype.startswith("float")
    values = imputed_value_floats if is_float else imputed_value_int64s
    missing = replaced_value_float if is_float else replaced_value_int64
    if not values:
        context.fail(f"expected imputed values for {x.dtype}, found none")
    emit = context.emit
    if missing != missing:
        is_missing = emit(op.isnan(x.expr))
    else:
        is_missing = emit(op.equal(x.expr, context.constant(missing, x.dtype).expr))
    table = np.array(values, x.dtype)
    return emit(op.where(is_missing, context.constant(table).expr, x.expr))


@converter("OneHotEncoder", domain=ML)
def one_hot_encoder(
    context: Context,
    x: Value | TextValue,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Expr:
    """A last axis with 1 at the category that an element is, else 0.

    With ``zeros=0`` a value of no category is an error in ONNX; here its row is zeros, too.
    """
    cats: Sequence[int] | None = cats_int64s
    if isinstance(x, TextValue):
        names = list(cats_strings or ())
        x, cats = context.value(_place_of_text(context, x, names)), range(len(names))
    if not cats:
        context.fail("expected categories of the type of the input, found none")
    emit = context.emit
    wide = emit(op.expand_dims(context.as_type(x.expr, "int64"), [context.rank(x, "X")]))
    same = emit(op.equal(wide, context.constant(np.array(cats, "int64")).expr))
    return emit(op.astype(same, "float32"))


@converter("FeatureVectorizer", domain=ML)
def feature_vectorizer(
    context: Context, *inputs: Value, inputdimensions: Sequence[int] | None = None
) -> Expr:
    """Features of several inputs side by side, in float32."""
    emit = context.emit
    if inputdimensions is not None and len(inputdimensions) != len(inputs):
        context.fail(f"inputdimensions: expected {len(inputs)} numbers, got {len(inputdimensions)}")
    parts = []
    for number, x in enumerate(inputs):
        rows = context.as_type(as_rows(context, x), "float32")
        if inputdimensions is not None:
            rows = _of_width(context, rows, inputdimensions[number])
        parts.append(rows)
    return parts[0] if len(parts) == 1 else emit(op.concat(parts, 1))


def _of_width(context: Context, rows: Expr, width: int) -> Expr:
    """Rows cut or filled with zeros to a width."""
    present = context.extent(context.value(rows), 1, "X")
    if present > width:
        return context.emit(op.strided_slice(rows, [1], [0], [width]))
    if present < width:
        return context.emit(op.nn.pad(rows, [0, 0, 0, width - present]))
    return rows


# Results


@converter("ZipMap", domain=ML)
def zip_map(
    context: Context,
    x: Value,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> MapValue:
    """A dict from labels to scores for each row."""
    names = class_names(context, classlabels_int64s, classlabels_strings)
    rows = context.value(as_rows(context, x))
    if context.extent(rows, 1, "X") != len(names):
        context.fail(f"expected {context.extent(rows, 1, 'X')} labels, got {len(names)}")
    return MapValue(rows, names)


@converter("LabelEncoder", since=1, domain=ML)
def label_encoder_of_texts(
    context: Context,
    x: Value | TextValue,
    *,
    classes_strings: Sequence[str],
    default_int64: int = -1,
    default_string: str = "_Unused",
) -> Value | TextValue:
    """Texts to their places, or places to texts."""
    places = list(range(len(classes_strings)))
    if isinstance(x, TextValue):
        return encoded(context, x, list(classes_strings), places, default_int64)
    return encoded(context, x, places, list(classes_strings), default_string)


@converter("LabelEncoder", since=2, domain=ML)
def label_encoder(context: Context, x: Value | TextValue, **given: Attribute) -> Value | TextValue:
    """The value that stands beside the key that an element is, else the default."""
    keys, values = _table(given, "keys"), _table(given, "values")
    if not len(keys) or len(keys) != len(values):
        context.fail(f"expected as many keys as values, got {len(keys)} and {len(values)}")
    tensor = given.get("default_tensor")
    if isinstance(tensor, np.ndarray) and tensor.size and tensor.dtype.kind == values.dtype.kind:
        default = tensor.ravel()[0]
    elif values.dtype.kind == "U":
        default = given.get("default_string", "_Unused")
    else:
        kind = "int64" if values.dtype.kind in "iu" else "float"
        default = given.get(f"default_{kind}", -1 if kind == "int64" else -0.0)
    return encoded(context, x, keys.tolist(), values, default)


def _table(given: Mapping[str, Attribute], name: str) -> Array:
    """The keys or values that one of the attributes gives."""
    tensor = given.get(f"{name}_tensor")
    if isinstance(tensor, np.ndarray) and tensor.size:
        return tensor.ravel()
    for suffix, dtype in (("int64s", "int64"), ("floats", "float32"), ("strings", np.str_)):
        items = given.get(f"{name}_{suffix}")
        if items:
            return np.array(items, dtype)
    return np.zeros(0)


def encoded(
    context: Context,
    x: Value | TextValue,
    keys: Sequence[int | float | str],
    values: Sequence[int | str] | Array,
    default: Attribute,
) -> Value | TextValue:
    """The values of the keys that elements are; ``values`` may be texts, as keys may be."""
    table = np.asarray(values)
    place = _place_of_key(context, x, keys)
    if table.dtype.kind in "USO":
        return TextValue(context.value(place), [*map(str, table.tolist()), str(default)])
    full = np.append(table, np.array([default], table.dtype))
    return context.value(op.take(context.constant(full).expr, place, 0))


def _place_of_text(context: Context, x: TextValue, keys: Sequence[str]) -> Expr:
    """As ``_place_of_key``: the texts that the model names have the first places of their table."""
    emit, index = context.emit, x.index.expr
    known = x.texts.texts if isinstance(x.texts, TextTable) else x.texts
    order = {key: place for place, key in reversed(list(enumerate(keys)))}
    places = [order.get(text, len(keys)) for text in known]
    if isinstance(x.texts, TextTable):  # a text that the model does not name is no key
        places.append(len(keys))
        index = emit(op.minimum(index, context.constant(len(known), "int64").expr))
    return emit(op.take(context.constant(np.array(places, "int64")).expr, index, 0))


def _place_of_key(
    context: Context, x: Value | TextValue, keys: Sequence[int | float | str]
) -> Expr:
    """Which key an element is, the first of equal ones; their number where it is none."""
    emit = context.emit
    if isinstance(x, TextValue):
        return _place_of_text(context, x, [str(key) for key in keys])
    if any(isinstance(key, str) for key in keys):
        context.fail("keys of text need an input of text: expected keys of numbers")
    wide = emit(op.expand_dims(x.expr, [context.rank(x, "X")]))
    table = context.constant(np.array(keys, x.dtype))
    same = emit(op.equal(wide, table.expr))
    if any(key != key for key in keys):
        both = emit(op.logical_and(emit(op.isnan(wide)), emit(op.isnan(table.expr))))
        same = emit(op.logical_or(same, both))
    numbers = context.constant(np.arange(len(keys), dtype="int64")).expr
    none = context.constant(len(keys), "int64").expr
    return emit(op.min(emit(op.where(same, numbers, none)), [context.rank(x, "X")]))
