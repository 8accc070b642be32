"""Fields of data classes against their annotations: what a file may and may not have put there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from weft.runtime.artifact.stored_types import check_stored
from weft.support.errors import IRTypeError


@dataclass
class Inner:
    """A class inside of another."""

    name: str
    count: int = 0


@dataclass
class Outer:
    """One field for each kind of annotation that files have."""

    text: str = ""
    number: int = 0
    either: int | str = 0
    maybe: str | None = None
    word: Literal["a", "b"] = "a"
    pair: tuple[int, str] = (0, "")
    many: tuple[int, ...] = ()
    nested: tuple[tuple[str, int | None], ...] = ()
    table: Mapping[str, int] = field(default_factory=dict)
    inner: Inner = field(default_factory=lambda: Inner("x"))
    inners: tuple[Inner, ...] = ()
    anything: Any = None
    nothing: None = None


FITTING = {
    "text": ["", "x"], "number": [0, -1, True], "either": [1, "x"], "maybe": [None, "x"],
    "word": ["a", "b"], "pair": [(1, "x")], "many": [(), (1,), (1, 2, 3)],
    "nested": [(), (("x", None), ("y", 3))], "table": [{}, {"a": 1}], "inner": [Inner("y", 4)],
    "inners": [(), (Inner("a"), Inner("b"))], "anything": [None, 3, object, [1]], "nothing": [None],
}  # fmt: skip
WRONG = {
    "text": [3, None, b"x"], "number": ["0", 0.5, None], "either": [None, 0.5, (1,)],
    "maybe": [3, ()], "word": ["c", 0, None, ("a",)], "pair": [(1,), (1, 2), ("x", 1), [1, "x"]],
    "many": [[1], ("x",), (1, None), 3], "nested": [("x", 1), (("x",),), (("x", "y"),)],
    "table": [3, (), [("a", 1)]], "inner": [None, "x", Outer()],
    "inners": [Inner("x"), (None,), (Inner("x"), 3)], "nothing": [0, ""],
}  # fmt: skip


@pytest.mark.parametrize("name", FITTING)
def test_what_the_annotation_names_is_let_through(name):
    for value in FITTING[name]:
        check_stored(Outer(**{name: value}))


@pytest.mark.parametrize("name", WRONG)
def test_anything_else_is_refused_with_the_field(name):
    for value in WRONG[name]:
        with pytest.raises(IRTypeError, match=f"Outer: expected .* in its field {name}, got"):
            check_stored(Outer(**{name: value}))


def test_fields_of_inner_classes_are_checked_too():
    with pytest.raises(IRTypeError, match="in its field inner, got Inner"):
        check_stored(Outer(inner=Inner(3)))
    with pytest.raises(IRTypeError, match="in its field inners"):
        check_stored(Outer(inners=(Inner("x"), Inner("y", None))))


def test_the_message_has_the_beginning_of_a_long_value():
    with pytest.raises(IRTypeError) as caught:
        check_stored(Outer(number="x" * 1000))
    assert len(str(caught.value)) < 200
