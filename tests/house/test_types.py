"""Types say something and names name something: what does neither is counted, and only gets less.

Both tables hold what there is today. Who brings a number down writes the new one; a package that
is not in a table has none to spare. A package is a folder of ``src/weft``; in ``tir`` and
``relax``, whose folders are as large as packages elsewhere, a folder in them.
"""

from __future__ import annotations

import ast
import math
from collections import Counter

import pytest

GOAL = 10
"""How often ``Any`` may be written in a thousand lines: where anything is really allowed."""
SPARE = 8
"""By how much a number may be lower than its limit before the limit has to follow."""

ANY_LIMITS = {
    "tir": 21,
}

SAYS_NOTHING = frozenset({"made", "found", "one", "renewed"})
"""Of a result they say that there is one. Its name says what it is: weights, call, match."""

NAME_LIMITS: dict[str, int] = {}


def package_of(source):
    """The package that a file counts to."""
    parts = source.path.parent.parts[2:]
    return ".".join(parts[: 2 if parts[:1] in (("tir",), ("relax",)) else 1]) or "weft"


def count_any(tree):
    """How often a type is Any."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def count_empty_names(tree):
    """How many variables, parameters and functions have a name that says nothing."""
    names = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names[node.id] += 1
        elif isinstance(node, ast.arg):
            names[node.arg] += 1
        elif isinstance(node, ast.FunctionDef):
            names[node.name] += 1
    return sum(names[name] for name in SAYS_NOTHING)


def complaints(numbers, limits, default, spare):
    """What is wrong with the numbers of the packages, and what to write where they got better."""
    for package, number in sorted(numbers.items()):
        limit = limits.get(package, default)
        if number > limit:
            yield f"{package}: {number}, allowed are {limit}"
        elif package in limits and number <= default:
            yield f"{package}: {number}, delete its line"
        elif package in limits and limit - number > spare:
            yield f'{package}: write "{package}": {number}, (the limit {limit} is too high)'
    yield from (f"{package}: no such package" for package in limits if package not in numbers)


def test_any_gets_rarer(weft_sources):
    lines, written = Counter(), Counter()
    for source in weft_sources:
        package = package_of(source)
        lines[package] += source.text.count("\n")
        written[package] += count_any(source.tree)
    rates = {package: math.ceil(1000 * written[package] / lines[package]) for package in lines}
    wrong = list(complaints(rates, ANY_LIMITS, GOAL, SPARE))
    assert not wrong, "Any in a thousand lines (ANY_LIMITS):\n" + "\n".join(wrong)


def test_names_that_say_nothing_get_rarer(weft_sources):
    numbers = Counter()
    for source in weft_sources:
        numbers[package_of(source)] += count_empty_names(source.tree)
    wrong = list(complaints(numbers, NAME_LIMITS, 0, SPARE))
    assert not wrong, f"names of {sorted(SAYS_NOTHING)} (NAME_LIMITS):\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(x: Any) -> dict[str, Any]: ...", 2),
        ("def f(x: list[int]) -> None: any(x)", 0),
    ],
)
def test_any_is_counted(text, count):
    assert count_any(ast.parse(text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("found = f(x)\nreturn_ = found", 1),
        ("def made(one, two): ...", 2),
        ("for one in many:\n    renewed, other = one", 2),
        ("if (found := f(x)):\n    pass", 1),
        ("x.found = f(one=1)", 0),
    ],
)
def test_names_are_counted(text, count):
    assert count_empty_names(ast.parse(text)) == count


@pytest.mark.parametrize(
    ("numbers", "limits", "complaint"),
    [
        ({"a": 21}, {"a": 20}, ["a: 21, allowed are 20"]),
        ({"a": 11}, {}, ["a: 11, allowed are 10"]),
        ({"a": 12}, {"a": 30}, ['a: write "a": 12, (the limit 30 is too high)']),
        ({"a": 9}, {"a": 12}, ["a: 9, delete its line"]),
        ({"a": 9}, {"b": 12}, ["b: no such package"]),
        ({"a": 20, "b": 10}, {"a": 22}, []),
    ],
)
def test_a_limit_follows_its_number(numbers, limits, complaint):
    assert list(complaints(numbers, limits, 10, 8)) == complaint
