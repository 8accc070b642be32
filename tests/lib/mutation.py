"""Damage: one or a few random changes of bytes, of JSON, of a protobuf message.

Each function takes a source of random numbers and the valid thing and returns a damaged copy, so a
seed says what was tried. The kinds of change follow Zalewski's afl-fuzz (2014): flipped bits,
numbers at the borders of their types, pieces cut out, doubled, exchanged or taken from elsewhere.
Texts of scripts have changes of their own (tests.lib.text_mutation).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, Final

NUMBERS: Final = (
    0, 1, -1, 2, 7, 64, 127, 128, 255, 256, -129, 32767, 65536, 2**31 - 1, 2**31, -(2**31), 2**32,
    2**53, 2**62, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 2**70, 10**30,
)  # fmt: skip
FLOATS: Final = (0.0, -0.0, 1.5, -1.0, 1e-320, 3.5e38, 1e300, float("inf"), float("nan"))
TEXTS: Final = (
    "", "x", "n", "int32", "float32", "handle", "main", "None", "n + 1", "n // 0", "(n", "\0", "ü",
    "\ud800", "../x", "x" * 5000, "__class__", "lambda: 0", "import os", "1" * 500,
)  # fmt: skip

CHANGES: Final = (1, 1, 1, 2, 3)
"""How many changes one damaged copy has: after few it says something more often."""


def mutated_bytes(r: random.Random, data: bytes) -> bytes:
    """The bytes with one to three changes.

    >>> mutated_bytes(random.Random(1), b"weft" * 4) != b"weft" * 4
    True
    """
    changed = bytearray(data)
    for _ in range(r.choice(CHANGES)):
        if changed:
            r.choice(_BYTE_CHANGES)(r, changed)
    return bytes(changed)


def _flip(r: random.Random, data: bytearray) -> None:
    data[r.randrange(len(data))] ^= 1 << r.randrange(8)


def _replace(r: random.Random, data: bytearray) -> None:
    data[r.randrange(len(data))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))


def _number(r: random.Random, data: bytearray) -> None:
    width = r.choice((2, 4, 8))
    at = r.randrange(len(data))
    piece = (r.choice(NUMBERS) % (1 << (8 * width))).to_bytes(width, "little")
    data[at : at + width] = piece[: len(data) - at]


def _cut(r: random.Random, data: bytearray) -> None:
    at = r.randrange(len(data))
    del data[at : at + r.choice((1, 2, 8, 100, len(data)))]


def _insert(r: random.Random, data: bytearray) -> None:
    at = r.randrange(len(data))
    data[at:at] = r.randbytes(r.choice((1, 4, 40)))


def _double(r: random.Random, data: bytearray) -> None:
    at, to = r.randrange(len(data)), r.randrange(len(data))
    data[to:to] = data[at : at + r.choice((1, 8, 64, 500))]


_BYTE_CHANGES: Final[tuple[Callable[[random.Random, bytearray], None], ...]] = (
    _flip, _flip, _replace, _number, _cut, _insert, _double,
)  # fmt: skip


def mutated_json(r: random.Random, value: Any) -> Any:
    """A copy of lists, dicts and plain values with one to three places changed.

    >>> mutated_json(random.Random(3), {"a": [1, 2], "b": "x"}) != {"a": [1, 2], "b": "x"}
    True
    """
    root = [copy.deepcopy(value)]
    for _ in range(r.choice(CHANGES)):
        places = _places(root)
        owner, key = r.choice(places)
        choice = r.randrange(14)
        if choice == 0 and owner is not root:
            del owner[key]
        elif choice == 1:
            other, place = r.choice(places)
            owner[key] = copy.deepcopy(other[place])
        elif choice == 2 and isinstance(owner, list) and owner is not root:
            owner.insert(r.randrange(len(owner) + 1), copy.deepcopy(owner[key]))
        elif choice == 3 and isinstance(owner, dict):
            owner[r.choice((*TEXTS, *owner))] = owner.pop(key)
        elif choice == 4:
            owner[key] = r.choice(([owner[key]], {"x": owner[key]}, [], {}))
        elif choice >= 10:  # what stands under the same key elsewhere fits, and means another thing
            alike = [o[key] for o, k in places if k == key and type(o[key]) is type(owner[key])]
            owner[key] = copy.deepcopy(r.choice(alike))
        else:
            owner[key] = _other(r, owner[key])
    return root[0]


def _places(root: list[Any]) -> list[tuple[Any, Any]]:
    """Every ``(owner, key)`` of the tree."""
    found: list[tuple[Any, Any]] = []
    todo: list[Any] = [root]
    while todo:
        owner = todo.pop()
        keys = list(owner) if isinstance(owner, dict) else range(len(owner))
        for key in keys:
            found.append((owner, key))
            if isinstance(owner[key], dict | list):
                todo.append(owner[key])
    return found


def _other(r: random.Random, value: Any) -> Any:
    """A plain value in the place of one, of its type more often than of another."""
    if r.random() < 0.25:
        return r.choice((None, True, False, r.choice(NUMBERS), r.choice(FLOATS), r.choice(TEXTS)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return r.choice((value + 1, value - 1, -value, 2 * value, r.choice(NUMBERS)))
    if isinstance(value, float):
        return r.choice((-value, value * 2, *FLOATS))
    if isinstance(value, str):
        return mutated_characters(r, value)
    return r.choice((None, r.choice(NUMBERS), r.choice(TEXTS), [], {}))


def mutated_characters(r: random.Random, text: str) -> str:
    """A text with one character changed, left out, put in or doubled; or another text."""
    if not text or r.random() < 0.2:
        return r.choice(TEXTS)
    at = r.randrange(len(text))
    middle = r.choice((
        "", text[at] * 2, r.choice("0123456789"), r.choice("()[]{}:,.*+-/%@=<>\"'\\ \n\t#"),
        chr(r.choice((0, 10, 0xE9, 0x2028, 0x1F600, r.randrange(32, 127)))), text[at].swapcase(),
    ))  # fmt: skip
    return text[:at] + middle + text[at + 1 :]


def mutated_message(r: random.Random, message: Any) -> Any:
    """A copy of a protobuf message with one to three fields of it, or of those in it, changed."""
    changed = type(message)()
    changed.CopyFrom(message)
    for _ in range(r.choice(CHANGES)):
        owner = r.choice(_messages(changed))
        fields = list(owner.DESCRIPTOR.fields)
        present = [field for field, _ in owner.ListFields()]
        field = r.choice(present) if present and r.random() < 0.8 else r.choice(fields)
        _change_field(r, owner, field)
    return changed


def _messages(root: Any) -> list[Any]:
    """A message and all that it holds."""
    found, todo = [], [root]
    while todo:
        message = todo.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.message_type is not None:
                todo += list(value) if _repeats(value) else [value]
    return found


def _repeats(value: Any) -> bool:
    return hasattr(value, "MergeFrom") and not hasattr(value, "DESCRIPTOR")


def _change_field(r: random.Random, owner: Any, field: Any) -> None:
    value = getattr(owner, field.name)
    if _repeats(value):
        _change_sequence(r, owner, field, value)
    elif field.message_type is not None:
        r.choice((owner.ClearField, lambda name: getattr(owner, name).SetInParent()))(field.name)
    elif r.random() < 0.2:
        owner.ClearField(field.name)
    else:
        _set(r, lambda new: setattr(owner, field.name, new), value)


def _change_sequence(r: random.Random, owner: Any, field: Any, values: Any) -> None:
    choice = r.randrange(4)
    at = r.randrange(len(values)) if len(values) else 0
    if not len(values) or choice == 0:
        if field.message_type is None:
            _set(r, values.append, values[at] if len(values) else _default(field))
        else:
            values.add()
    elif choice == 1:
        del values[at]
    elif choice == 2 and field.message_type is not None:
        values.add().CopyFrom(values[at])
    elif field.message_type is None:
        _set(r, lambda new: values.__setitem__(at, new), values[at])
    else:
        other = r.randrange(len(values))
        kept = type(values[at])()
        kept.CopyFrom(values[at])
        values[at].CopyFrom(values[other])
        values[other].CopyFrom(kept)
    del owner


def _default(field: Any) -> Any:
    return {"float": 0.0, "double": 0.0, "string": "", "bytes": b""}.get(
        {1: "double", 2: "float", 9: "string", 12: "bytes"}.get(field.type, "int"), 0
    )


def _set(r: random.Random, assign: Callable[[Any], Any], value: Any) -> None:
    """Give another value of the same type; one that does not fit the field's range is passed by."""
    new = mutated_bytes(r, value) if isinstance(value, bytes) and value else _other(r, value)
    if isinstance(value, bytes) and not isinstance(new, bytes):
        new = r.randbytes(4)
    try:
        assign(new)
    except (TypeError, ValueError, OverflowError):
        return  # protobuf holds no such value
