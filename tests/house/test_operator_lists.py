"""Passes ask operators for their traits; none lists operators by name (docs/design/0015)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from weft.relax.op.definition import FUNCTIONS

MOST = 4
"""Names in one literal that no one has to keep in step with the operators."""
PASSES = tuple(
    Path("src/weft") / name
    for name in (
        "relax/transform", "relax/analysis", "relax/dpl", "relax/distributed", "dlight", "backends"
    )
)
TABLES = Path("src/weft/relax/transform/legalize")
"""Tables operator -> lowering, which become part of the operators' own definitions."""
NAMES = frozenset(
    spelled for name in FUNCTIONS for spelled in (name, f"relax.{name}", name.rpartition(".")[2])
)


def listed(tree):
    """(line, names) of every literal that holds names of operators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            parts = node.elts
        elif isinstance(node, ast.Call):
            parts = node.args
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if all(word in NAMES for word in words):
                yield node.lineno, words
            continue
        else:
            continue
        values = [part.value for part in parts if isinstance(part, ast.Constant)]
        yield node.lineno, [value for value in values if value in NAMES]


def test_no_pass_lists_operators(weft_sources):
    lists = [
        f"{source.path}:{line}: {', '.join(names)}"
        for source in weft_sources
        if any(folder in source.path.parents for folder in PASSES)
        and TABLES not in source.path.parents
        for line, names in listed(source.tree)
        if len(names) > MOST
    ]
    assert not lists, "ask for a trait (weft.ir.traits) instead:\n" + "\n".join(lists)


@pytest.mark.parametrize(
    "text",
    [
        "X = {'relax.add', 'relax.exp', 'relax.nn.relu', 'relax.sum', 'relax.tanh'}",
        "X = {'add': 1, 'exp': 2, 'relu': 3, 'sum': 4, 'tanh': 5}",
        "X = 'add exp relu sum tanh'.split()",
        "X = f('add', 'exp', 'relu', 'sum', 'tanh')",
    ],
)
def test_a_list_is_seen(text):
    assert any(len(names) > MOST for _, names in listed(ast.parse(text)))


def test_prose_is_no_list():
    """A docstring may name operators in a sentence."""
    text = '"""Products (matmul, conv2d) and what follows: add, relu, gelu, silu, tanh."""'
    assert not any(len(names) > MOST for _, names in listed(ast.parse(text)))
