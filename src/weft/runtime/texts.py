"""Text in programs: a tensor of text is an int64 tensor of places in a table of texts.

What only moves or compares elements needs no text then: kernels move places, and equal texts have
equal places. The functions here do the rest. Programs call them by name, ``weft.text.*``, with the
table of the call: ``weft.text.table`` makes it of the texts that the program names, which have the
first places, and texts of inputs and new texts follow. Importing the module registers the
functions; the virtual machine does.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.errors import RuntimeFault

TABLE: Final = "weft.text.table"
PLACES: Final = "weft.text.places"
TEXTS: Final = "weft.text.texts"
CONCAT: Final = "weft.text.concat"
SPLIT: Final = "weft.text.split"
FULL_MATCH: Final = "weft.text.full_match"
NORMALIZE: Final = "weft.text.normalize"
TOKENIZE: Final = "weft.text.tokenize"
TO_NUMBERS: Final = "weft.text.to_numbers"
OF_NUMBERS: Final = "weft.text.of_numbers"

F = TypeVar("F", bound=Callable[..., Any])


class TextTable:
    """The texts of one call of a program: first those that the program names.

    >>> table = TextTable(("red", "blue"))
    >>> table.place("blue"), table.place("green"), table.text(2)
    (1, 2, 'green')
    """

    __slots__ = ("_first", "_more", "_places", "_texts")

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts, self._first = texts, _places_of(texts)
        self._more: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """The place of a text, a new one if the table does not have it."""
        place = self._first.get(text)
        if place is None:
            place = self._places.setdefault(text, len(self._texts) + len(self._more))
            if place == len(self._texts) + len(self._more):
                self._more.append(text)
        return place

    def text(self, place: int) -> str:
        """The text at a place."""
        count = len(self._texts)
        return self._texts[place] if place < count else self._more[place - count]

    def places(self, texts: Iterable[str], shape: Sequence[int]) -> NDArray:
        """Places of texts, as a tensor of that shape."""
        places = np.array([self.place(text) for text in texts], "int64")
        return NDArray(places.reshape(tuple(shape)))

    def texts(self, places: NDArray) -> list[str]:
        """The texts of a tensor of places, row by row."""
        return [self.text(place) for place in np.asarray(places).ravel().tolist()]


@functools.lru_cache(maxsize=64)
def _places_of(texts: tuple[str, ...]) -> dict[str, int]:
    return {text: place for place, text in enumerate(texts)}


@functools.lru_cache(maxsize=64)
def _named(description: str) -> tuple[str, ...]:
    return tuple(json.loads(description))


def _library(name: str) -> Callable[[F], F]:
    return register_func(name, override=True)


@_library(TABLE)
def table_of(description: object) -> TextTable:
    """A new table with the texts that a program names, a JSON list."""
    return TextTable(_named(str(description)))


@_library(PLACES)
def places_of_input(table: TextTable, name: object, shape: object, given: object) -> NDArray:
    """The places of the texts of an input: an array of text, or lists of them.

    ``shape`` is JSON: an extent, or the name of one that may be any, for each dimension.
    """
    array = _as_texts(str(name), given)
    dims = json.loads(str(shape))
    if array.ndim != len(dims) or any(
        isinstance(dim, int) and dim != extent
        for dim, extent in zip(dims, array.shape, strict=True)
    ):
        text = f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"
        raise RuntimeFault(f"input {name!s}: expected text of shape {text}, got {array.shape}")
    texts = array.ravel().tolist()
    for index, text in enumerate(texts):
        if isinstance(text, bytes):
            texts[index] = text.decode("utf-8", "replace")
        elif not isinstance(text, str):
            place = list(map(int, np.unravel_index(index, array.shape)))
            raise RuntimeFault(
                f"input {name!s}: expected text, got {text!r:.60} at {place}; fill in what is "
                "missing, or convert it with str()"
            )
    return table.places(texts, array.shape)


def _as_texts(name: str, given: object) -> np.ndarray:
    """An array that may hold text: of texts, of bytes or of objects, or empty."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:  # lists of several lengths
        raise RuntimeFault(f"input {name}: expected an array of text: {error}") from error
    if array.dtype.kind not in "OUST" and array.size:
        raise RuntimeFault(f"input {name}: expected an array of text, got one of {array.dtype}")
    return array


@_library(TEXTS)
def texts_of_result(table: TextTable, places: NDArray) -> np.ndarray:
    """The texts at places, as an array of objects."""
    array = np.empty(np.asarray(places).size, object)
    array[:] = table.texts(places)
    return array.reshape(np.asarray(places).shape)


@_library(CONCAT)
def concat(table: TextTable, first: NDArray, second: NDArray) -> NDArray:
    """Each text followed by the text at the same place of another tensor; shapes are broadcast."""
    try:
        pair = np.broadcast_arrays(np.asarray(first), np.asarray(second))
    except ValueError:
        raise RuntimeFault(
            f"StringConcat: expected shapes that broadcast, got {first.shape} and {second.shape}"
        ) from None
    both = zip(*[array.ravel().tolist() for array in pair], strict=True)
    return table.places([table.text(a) + table.text(b) for a, b in both], pair[0].shape)


@_library(SPLIT)
def split(
    table: TextTable, places: NDArray, delimiter: object, limit: int
) -> tuple[NDArray, NDArray]:
    """The parts of texts along a new last axis, empty texts behind them; how many each text has.

    Texts are split at the delimiter, ``limit`` times at most unless that is -1; at white space if
    the delimiter is empty.
    """
    separator = str(delimiter) or None
    parts = [text.split(separator, int(limit)) for text in table.texts(places)]
    counts = np.array([len(row) for row in parts], "int64")
    width = max(map(len, parts), default=0)
    padded = [text for row in parts for text in [*row, *[""] * (width - len(row))]]
    split_texts = table.places(padded, (*places.shape, width))
    return split_texts, NDArray(counts.reshape(places.shape))


@_library(FULL_MATCH)
def full_match(table: TextTable, places: NDArray, pattern: object) -> NDArray:
    """Whether the whole of each text matches a regular expression."""
    compiled = re.compile(str(pattern))
    matches = [compiled.fullmatch(text) is not None for text in table.texts(places)]
    return NDArray(np.array(matches, bool).reshape(places.shape))


@_library(NORMALIZE)
def normalize(
    table: TextTable, places: NDArray, case: object, stopwords: object, is_case_sensitive: int
) -> NDArray:
    """Texts without stop words (a JSON list), in another case; one empty text if none is left.

    The texts are a vector, or a matrix of one row.
    """
    stop = _named(str(stopwords))
    texts = table.texts(places)
    if is_case_sensitive:
        kept = [text for text in texts if text not in stop]
    else:
        lowered = {text.lower() for text in stop}
        kept = [text for text in texts if text.lower() not in lowered]
    if str(case) in ("LOWER", "UPPER"):
        kept = [text.lower() if str(case) == "LOWER" else text.upper() for text in kept]
    kept = kept or [""]
    return table.places(kept, (*places.shape[:-1], len(kept)))


@_library(TOKENIZE)
def tokenize(table: TextTable, places: NDArray, description: object) -> NDArray:
    """The tokens of texts along a new last axis, ``pad`` behind them.

    The description is JSON: ``pattern`` matches a token, or ``separators`` match what lies between
    tokens; ``shortest`` is the least length of a token; ``marked`` rows begin with the character 2
    and end with 3.
    """
    how = json.loads(str(description))
    rows = [_tokens(text, how) for text in table.texts(places)]
    width = max(map(len, rows), default=0)
    padded = [text for row in rows for text in [*row, *[how["pad"]] * (width - len(row))]]
    return table.places(padded, (*places.shape, width))


def _tokens(text: str, how: dict[str, Any]) -> list[str]:
    if how["pattern"]:
        tokens = [match.group() for match in re.finditer(how["pattern"], text)]
    elif how["separators"] == [""]:
        tokens = list(text)
    else:
        tokens = re.split("|".join(f"(?:{item})" for item in how["separators"]), text)
    kept = [token for token in tokens if token and len(token) >= how["shortest"]]
    return ["\x02", *kept, "\x03"] if how["marked"] else kept


@_library(TO_NUMBERS)
def to_numbers(table: TextTable, places: NDArray, dtype: object) -> NDArray:
    """The numbers that texts spell: ``"1e3"``, ``"-INF"``, ``"NaN"``."""
    kind = np.dtype(str(dtype))
    read = int if kind.kind in "iu" else float
    numbers = []
    for text in table.texts(places):
        try:
            numbers.append(read(text))
        except ValueError:
            raise RuntimeFault(f"Cast: expected a number of {dtype}, got {text!r:.60}") from None
    return NDArray(np.array(numbers).astype(kind).reshape(places.shape))


@_library(OF_NUMBERS)
def of_numbers(table: TextTable, numbers: NDArray) -> NDArray:
    """Numbers as ONNX writes them: the shortest decimal that reads back, ``NaN``, ``-INF``."""
    array = np.asarray(numbers)
    return table.places([_spelled(item) for item in array.ravel()], array.shape)


def _spelled(number: np.generic) -> str:
    if isinstance(number, np.bool_):
        return str(int(number))
    if not isinstance(number, np.floating):
        return str(number)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return str(number)
