"""What is deprecated goes when it was said to go."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import weft
from weft.support.deprecation import is_overdue


def deprecations(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, name, removal) of each use of ``deprecated``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "deprecated":
            told = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            yield node.lineno, ast.literal_eval(node.args[0]), told["removal"]


def overdue(trees: Sequence[tuple[str, ast.AST]], version: str) -> list[str]:
    """What must not be in ``version`` any more, as lines of a message."""
    return [
        f"{path}:{line}: {name} was to go in {removal}: delete it, or say why it stays longer"
        for path, tree in trees
        for line, name, removal in deprecations(tree)
        if is_overdue(removal, version)
    ]


def test_nothing_outlives_its_removal(weft_sources):
    late = overdue([(str(source.path), source.tree) for source in weft_sources], weft.__version__)
    assert not late, "\n" + "\n".join(late)


def test_what_outlives_its_removal_is_found():
    text = "@deprecated('weft.a', since='0.2', removal='0.4', replacement='b')\ndef a(): ...\n"
    trees = [("a.py", ast.parse(text))]
    assert overdue(trees, "0.3") == []
    assert overdue(trees, "0.4")[0].startswith("a.py:1: weft.a was to go in 0.4")
