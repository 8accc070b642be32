"""Sizes: files, functions and lines stay within what a reader holds in mind."""

from __future__ import annotations

import ast

from tests.lib.syntax import nodes_of

FILE_LIMIT = 500
TEST_FILE_LIMIT = 800
TABLE_LIMIT = 1000
BODY_LIMIT = 40
TEST_BODY_LIMIT = 60
LINE_LIMIT = 100

# Files that are one table of operators or rules: path -> reason.
TABLES: dict[str, str] = {}
# Functions up to TEST_BODY_LIMIT, as those of tests are: "path:name" -> reason.
LONG_BODIES: dict[str, str] = {}


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring."""
    body = function.body
    if ast.get_docstring(function, clean=False) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_files_are_short(sources):
    long = []
    for source in sources:
        limit = FILE_LIMIT if str(source.path).startswith("src/") else TEST_FILE_LIMIT
        if str(source.path) in TABLES:
            limit = TABLE_LIMIT
        if source.text.count("\n") > limit:
            long.append(f"{source.path}: {source.text.count(chr(10))} lines")
    assert not long, (
        f"over {FILE_LIMIT} lines, {TEST_FILE_LIMIT} of tests (where is the seam?): {long}"
    )


def test_function_bodies_are_short(sources):
    long = []
    for source in sources:
        for node in nodes_of(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                listed = f"{source.path}:{node.name}" in LONG_BODIES
                is_ours = str(source.path).startswith("src/") and not listed
                lines = body_lines(node)
                if lines > (BODY_LIMIT if is_ours else TEST_BODY_LIMIT):
                    long.append(f"{source.path}:{node.lineno}: {node.name} has {lines} lines")
    assert not long, "bodies that are too long:\n" + "\n".join(long)


def test_lines_are_short(sources):
    long = [
        f"{s.path}:{number}: {len(line)}"
        for s in sources
        for number, line in enumerate(s.text.splitlines(), 1)
        if len(line) > LINE_LIMIT and "# noqa: E501" not in line
    ]
    assert not long, f"lines over {LINE_LIMIT} characters:\n" + "\n".join(long)


def test_listed_exceptions_exist_and_have_reasons(sources):
    paths = {str(s.path) for s in sources}
    functions = {
        f"{s.path}:{node.name}"
        for s in sources
        for node in nodes_of(s.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert set(TABLES) <= paths
    assert set(LONG_BODIES) <= functions
    assert all(TABLES.values())
    assert all(LONG_BODIES.values())
