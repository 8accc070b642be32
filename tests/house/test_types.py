"""Types say something and names name something: what does neither is counted.

A package is a folder of ``src/weft``; in ``tir`` and ``relax``, whose folders are as large as
packages elsewhere, a folder in them.
"""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.lib.syntax import nodes_of

MOST = 10
"""How often ``Any`` may be written in a thousand lines: where anything is really allowed."""
SAYS_NOTHING = frozenset({"made", "found", "one", "renewed"})
"""Of a result they say that there is one. Its name says what it is: weights, call, match."""


def package_of(source):
    """The package that a file counts to."""
    parts = source.path.parent.parts[2:]
    return ".".join(parts[: 2 if parts[:1] in (("tir",), ("relax",)) else 1]) or "weft"


def count_any(tree):
    """How often a type is Any."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes_of(tree))


def empty_names(tree):
    """The variables, parameters and functions whose names say nothing: (line, name)."""
    for node in nodes_of(tree):
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef):
            name = node.name
        if name in SAYS_NOTHING:
            yield node.lineno, name


def test_any_is_rare(weft_sources):
    lines, written = Counter(), Counter()
    for source in weft_sources:
        package = package_of(source)
        lines[package] += source.text.count("\n")
        written[package] += count_any(source.tree)
    rates = {package: 1000 * written[package] / lines[package] for package in lines}
    wrong = [f"{package}: {rate:.1f}" for package, rate in sorted(rates.items()) if rate > MOST]
    assert not wrong, f"Any more than {MOST} times in a thousand lines:\n" + "\n".join(wrong)


def test_names_say_something(weft_sources):
    wrong = [
        f"{source.path}:{line}: {name}"
        for source in weft_sources
        for line, name in empty_names(source.tree)
    ]
    assert not wrong, "names that say only that there is a result:\n" + "\n".join(wrong)


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
    ("text", "names"),
    [
        ("found = f(x)\nreturn_ = found", [(1, "found")]),
        ("def made(one, two): ...", [(1, "made"), (1, "one")]),
        ("for one in many:\n    renewed, other = one", [(1, "one"), (2, "renewed")]),
        ("if (found := f(x)):\n    pass", [(1, "found")]),
        ("x.found = f(one=1)", []),
    ],
)
def test_names_are_seen(text, names):
    assert sorted(empty_names(ast.parse(text))) == names
