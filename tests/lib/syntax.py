"""Syntax trees that several tests walk through."""

from __future__ import annotations

import ast
import functools


@functools.cache
def nodes_of(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of a tree, walked once: the house tests ask for those of every file many times."""
    return tuple(ast.walk(tree))
