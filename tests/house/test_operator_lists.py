"""Passes ask operators for their traits; none lists operators by name (docs/design/0015)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.lib.syntax import nodes_of
from weft.relax.op.definition import FUNCTIONS

MOST = 4
"""Names in one literal that no one has to keep in step with the operators."""
PASSES = tuple(
    Path("src/weft") / name
    for name in (
        "relax/transform",
        "relax/analysis",
        "relax/dpl",
        "relax/distributed",
        "dlight",
        "backends",
    )
)
NAMES = frozenset(
    spelled for name in FUNCTIONS for spelled in (name, f"relax.{name}", name.rpartition(".")[2])
)


def listed(tree):
    """(line, names) of every literal that holds names of operators."""
    for node in nodes_of(tree):
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
        for line, names in listed(source.tree)
        if len(names) > MOST
    ]
    assert not lists, "ask for a trait (weft.ir.traits) instead:\n" + "\n".join(lists)


@pytest.mark.parametrize(("name", "most"), [("gelu", 8), ("scatter_elements", 6), ("conv2d", 12)])
def test_few_files_name_an_operator(weft_sources, name, most):
    """Its row, its tensor expression and reference, importers, and what computes it natively."""
    named = [
        str(source.path) for source in weft_sources
        if re.search(rf"\b{name}\b", source.text) and "testing" not in source.path.parts
    ]  # fmt: skip
    assert len(named) <= most, f"ask the registry instead of naming {name}:\n" + "\n".join(named)


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
