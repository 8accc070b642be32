"""LLVM IR of more than a line stands in files of its own, where LLVM and editors read it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.lib.syntax import nodes_of

INSTRUCTION = re.compile(
    r"^\s*(define |declare |br (i1|label) |ret (void|i\d+|ptr) |store |%[\w.]+ = \w+ |@[\w.]+ = )",
    re.MULTILINE,
)


def texts(tree: ast.AST) -> Iterator[ast.Constant]:
    """String constants that are no docstrings."""
    documentation = set()
    for node in nodes_of(tree):
        body = getattr(node, "body", None)
        for stmt in body if isinstance(body, list) else ():
            if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant):
                documentation.add(id(stmt.value))
    for node in nodes_of(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in documentation:
                yield node


def test_no_string_holds_lines_of_llvm_ir(weft_sources):
    wrong = [
        f"{source.path}:{text.lineno}"
        for source in weft_sources
        for text in texts(source.tree)
        if len(INSTRUCTION.findall(str(text.value))) > 1
    ]
    assert not wrong, "LLVM IR in a string; write a .ll file:\n" + "\n".join(wrong)
