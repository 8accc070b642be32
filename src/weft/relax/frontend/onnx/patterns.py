"""Regular expressions of models. They are written for RE2, and matched by Python's ``re``.

RE2 takes time in proportion to the text; Python goes back and tries again. Refused is what RE2 does
not have, and repetitions of what may match one text in several ways, which take Python a time that
doubles with each character: ``(a+)+``, ``(a|a)*``. ``(?:,[a-z]+)*`` is taken, for each repetition
begins with a character that nothing else in it matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]  # what re itself reads patterns with
from typing import Any, Final

from weft.relax.frontend.onnx.context import Context

Item = tuple[Any, Any]
"""A part of a parsed expression: its kind, and what belongs to it."""
CHARACTERS: Final = frozenset([*map(chr, range(0x600)), *"\u2003\u3042\u4e00\ufb01"])
"""The characters by which sets of characters are compared."""
_ABSENT: Final = {
    "ASSERT": "a lookaround such as (?=...)",
    "ASSERT_NOT": "a negative lookaround such as (?!...)",
    "GROUPREF": r"a back-reference such as \1",
    "GROUPREF_EXISTS": "a condition such as (?(1)...)",
    "ATOMIC_GROUP": "an atomic group (?>...)",
    "POSSESSIVE_REPEAT": "a possessive quantifier such as *+",
}


def check_pattern(context: Context, what: str, pattern: str) -> None:
    """OnnxNodeError unless a pattern is a regular expression that is matched in bounded time."""
    try:
        re.compile(pattern)
        items = list(_parser.parse(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        context.fail(f"{what}: expected a regular expression, got {pattern!r:.60}: {error}")
    for item in _all_items(items):
        name = _ABSENT.get(str(item[0]))
        if name is not None:
            context.fail(f"{what}: {pattern!r:.60} has {name}, which RE2 does not have")
    for item in _all_items(items):
        if _is_repeated(item) and _is_ambiguous(list(item[1][2])):
            context.fail(
                f"{what}: {pattern!r:.60} repeats what may match one text in several ways, which "
                "may take a time that doubles with each character; expected a repetition that "
                "begins or ends with a character which nothing else in it matches"
            )


def _all_items(items: Iterable[Item]) -> list[Item]:
    """The items and all that are inside of them."""
    result = []
    todo = list(items)
    while todo:
        item = todo.pop()
        result.append(item)
        for part in _inside(item):
            todo += part
    return result


def _inside(item: Item) -> list[list[Item]]:
    """The sequences of items inside of an item."""
    kind, content = str(item[0]), item[1]
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return [list(content[2])]
    if kind == "SUBPATTERN":
        return [list(content[-1])]
    if kind == "BRANCH":
        return [list(branch) for branch in content[1]]
    return []


def _is_repeated(item: Item) -> bool:
    """Whether an item is a repetition of two or more."""
    return str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT") and int(item[1][1]) > 1


def _is_ambiguous(items: list[Item]) -> bool:
    """Whether a sequence, repeated, may match a text in several ways."""
    items = _flat(items)
    inner = _all_items(items)
    sequences = [items, *[_flat(part) for item in inner for part in _inside(item)]]
    if any(map(_may_split, sequences)) or any(map(_is_undecided, inner)):
        return True
    if all(str(item[0]) == "BRANCH" for item in inner if _varies(item)):
        return False
    for place, others in ((0, items[1:]), (-1, items[:-1])):
        mark = [items[place]]
        if others and _is_character(mark[0]) and not _matched(mark) & _matched(others):
            return False
    return True


def _may_split(items: list[Item]) -> bool:
    """Whether what a sequence matches may be divided among its items in several ways."""
    varying = [any(map(_varies, _all_items([item]))) for item in items]
    if sum(varying) < 2:
        return False
    sets = [_matched([item]) for item in items]
    return any(
        varies and chars & other
        for place, (varies, chars) in enumerate(zip(varying, sets, strict=True))
        for other in [*sets[:place], *sets[place + 1 :]]
    )


def _is_undecided(item: Item) -> bool:
    """Whether a choice, or a repetition of what may be empty, may match in several ways."""
    if str(item[0]) == "BRANCH":
        return not _are_distinct(item)
    return _varies(item) and _may_be_empty(list(item[1][2]))


def _may_be_empty(items: list[Item]) -> bool:
    return not any(map(_is_needed, _flat(items)))


def _is_needed(item: Item) -> bool:
    """Whether an item matches a character at least."""
    if str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        return bool(item[1][0] > 0) and not _may_be_empty(list(item[1][2]))
    if str(item[0]) == "BRANCH":
        return not any(map(_may_be_empty, _inside(item)))
    return _is_character(item)


def _flat(items: list[Item]) -> list[Item]:
    """A sequence without the groups that are all of a part of it."""
    flat: list[Item] = []
    for item in items:
        flat += _flat(_inside(item)[0]) if str(item[0]) == "SUBPATTERN" else [item]
    return flat


def _varies(item: Item) -> bool:
    """Whether an item may match texts of several lengths, or in several ways."""
    if str(item[0]) in ("MAX_REPEAT", "MIN_REPEAT"):
        return bool(item[1][0] != item[1][1])
    return str(item[0]) == "BRANCH"


def _are_distinct(item: Item) -> bool:
    """Whether no two branches begin with the same character."""
    seen: set[str] = set()
    for branch in map(_flat, _inside(item)):
        if not branch or not _is_character(branch[0]):
            return False
        first = _matched(branch[:1])
        if seen & first:
            return False
        seen |= first
    return True


def _is_character(item: Item) -> bool:
    return str(item[0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")


def _matched(items: Iterable[Item]) -> set[str]:
    """The characters that may be in a text that items match; letters in both cases."""
    result: set[str] = set()
    for kind, content in _all_items(items):
        if str(kind) == "IN":
            result |= _set_of(content)
        elif str(kind) in ("LITERAL", "NOT_LITERAL", "ANY"):
            result |= _single(str(kind), content)
    return result | {other for char in result for other in (char.lower(), char.upper())}


def _single(kind: str, content: Any) -> set[str]:
    if kind == "ANY":
        return set(CHARACTERS)
    return {chr(content)} if kind == "LITERAL" else set(CHARACTERS - {chr(content)})


_CATEGORIES: Final = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}


def _set_of(content: Iterable[Item]) -> set[str]:
    """The characters of a class such as ``[^a-z_]``."""
    chars: set[str] = set()
    is_negated = False
    for kind, value in content:
        if str(kind) == "NEGATE":
            is_negated = True
        elif str(kind) == "RANGE":
            chars |= {char for char in CHARACTERS if value[0] <= ord(char) <= value[1]}
            chars |= {chr(value[0]), chr(value[1])}
        elif str(kind) == "CATEGORY":
            name = str(value).removeprefix("CATEGORY_")
            inside = re.compile(_CATEGORIES[name.removeprefix("NOT_")])
            is_not = name.startswith("NOT_")
            chars |= {char for char in CHARACTERS if bool(inside.match(char)) != is_not}
        else:
            chars |= _single(str(kind), value)
    return set(CHARACTERS - chars) if is_negated else chars
