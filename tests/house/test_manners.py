"""Manners that a reader relies on: docstrings, honest exception handling, plain imports."""

from __future__ import annotations

import ast
import re
import subprocess

from tests.lib.syntax import nodes_of

# Names of places that mean nothing on another machine: workplaces and registry hosts.
PLACES = re.compile(
    r"(?<![\w.])/(?:work|root|home/\w+|opt/(?:pypi|wheels))\b|pythonhosted\.org|pypi\.org"
    r"|download\.pytorch\.org|\.\./shared"
)
TEXT_SUFFIXES = {".py", ".md", ".toml", ".txt", ".cfg", ".yml", ".yaml", ".json", ".c", ".h", ""}


def public(name: str) -> bool:
    return not name.startswith("_")


def test_modules_have_docstrings(sources):
    bare = [str(s.path) for s in sources if s.tree.body and ast.get_docstring(s.tree) is None
            and s.path.parts[0] != "tests"]  # fmt: skip
    assert not bare, f"modules without a docstring: {bare}"


def test_public_classes_and_functions_have_docstrings(weft_sources):
    bare = []
    for source in weft_sources:
        for node in source.tree.body:
            if (
                isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and public(node.name)
                and ast.get_docstring(node) is None
                and not any("overload" in ast.unparse(d) for d in node.decorator_list)
                and not any(ast.unparse(d).startswith("T.prim_func") for d in node.decorator_list)
            ):
                bare.append(f"{source.path}:{node.lineno}: {node.name}")
    assert not bare, "no docstring:\n" + "\n".join(bare)


def test_attributes_that_are_computed_once_hold_no_lock(weft_sources):
    """``functools.cached_property`` hangs forked children: use ``lazy_property``."""
    lazy = "lazy_property.py"
    wrong = [s.path for s in weft_sources if "cached_property" in s.text and s.path.name != lazy]
    assert not wrong


MARK = re.compile(r"# (?:noqa|type: ignore)\b")
REASONED = re.compile(
    r"# (?:noqa: [A-Z]+\d+(?:, [A-Z]+\d+)* - |type: ignore\[[a-z-]+(?:, [a-z-]+)*\]  ?# )\w"
)


def test_marks_for_the_linter_and_the_type_checker_have_reasons(weft_sources):
    wrong = [
        f"{source.path}:{number}: {line.strip()}"
        for source in weft_sources
        for number, line in enumerate(source.text.splitlines(), 1)
        if MARK.search(line) and not REASONED.search(line)
    ]
    assert not wrong, "write why, or better code:\n" + "\n".join(wrong)


def test_no_bare_except_and_no_swallowed_exception(sources):
    wrong = []
    for source in sources:
        for node in nodes_of(source.tree):
            if not isinstance(node, ast.ExceptHandler):
                continue
            where = f"{source.path}:{node.lineno}: "
            if node.type is None:
                wrong.append(f"{where}bare except")
            elif ast.unparse(node.type) in ("Exception", "BaseException") and all(
                isinstance(statement, ast.Pass | ast.Continue) for statement in node.body
            ):
                wrong.append(f"{where}except {ast.unparse(node.type)} swallows what it catches")
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_raise_of_plain_exception(weft_sources):
    wrong = [
        f"{source.path}:{node.lineno}"
        for source in weft_sources
        for node in nodes_of(source.tree)
        if isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and ast.unparse(node.exc.func) in ("Exception", "BaseException")
    ]
    assert not wrong, f"raise one of weft.support.errors instead: {wrong}"


def test_no_star_imports_and_no_relative_imports(sources):
    wrong = []
    for source in sources:
        for node in nodes_of(source.tree):
            if isinstance(node, ast.ImportFrom) and (node.level or node.names[0].name == "*"):
                wrong.append(f"{source.path}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_first_party_imports_inside_functions(weft_sources):
    wrong = []
    for source in weft_sources:
        imports = [n for n in nodes_of(source.tree) if isinstance(n, ast.Import | ast.ImportFrom)]
        if not any(node.col_offset for node in imports):
            continue  # all stand at the left margin, in no function
        for function in nodes_of(source.tree):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for node in ast.walk(function):
                names = (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import)
                    else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                )  # fmt: skip
                if any(name.split(".")[0] == "weft" for name in names):
                    wrong.append(f"{source.path}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "import at the top of the file (or use a slot):\n" + "\n".join(wrong)


def test_no_name_of_a_workplace_or_registry(root):
    listed = subprocess.run(
        ["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    wrong = []
    for name in filter(None, listed):
        path = root / name
        if name == "tests/house/test_manners.py" or path.suffix not in TEXT_SUFFIXES:
            continue
        if not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if PLACES.search(line):
                wrong.append(f"{name}:{number}: {line.strip()[:80]}")
    assert not wrong, "\n" + "\n".join(wrong)
