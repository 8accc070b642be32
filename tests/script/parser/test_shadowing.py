"""Which variables end with a loop or a branch though the function reads them afterwards."""

from __future__ import annotations

import ast
import textwrap

import pytest

from weft.script.parser import shadowing


def hidden(body):
    """The ``name@line`` of the assignments in a function that make a difference."""
    text = "def f(n):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    function = ast.parse(text).body[0]
    inner = [node for node in ast.walk(function) if isinstance(node, shadowing.Assignment)]
    return [f"{name}@{node.lineno - 1}" for node, name, _ in shadowing.find(function, inner)]


# A function's body, and the assignments whose new variable Python would have read later.
ROWS = {
    "no loop": ("s = 1\ns = 2\nuse(s)", []),
    "read after the loop": ("s = 1\nfor i in r:\n    s = 2\nuse(s)", ["s@3"]),
    "not read after the loop": ("s = 1\nfor i in r:\n    s = 2\n    use(s)", []),
    "read in the next iteration": ("for j in r:\n    s = 1\n    for i in r:\n        use(s)\n"
                                   "        s = 2", ["s@5"]),
    "read before, in the iteration of the outer loop that defines it": (
        "for j in r:\n    s = 1\n    use(s)\n    if c:\n        s = 2", []),
    "read before, in the next iteration of a loop within": (
        "s = 1\nfor j in r:\n    use(s)\n    if c:\n        s = 2", ["s@5"]),
    "augmented": ("s = 1\nfor i in r:\n    s += 2\nuse(s)", ["s@3"]),
    "augmented reads itself in the next iteration": ("s = 1\nfor i in r:\n    s += 2", ["s@3"]),
    "annotated": ("s = 1\nif c:\n    s: int = 2\nuse(s)", ["s@3"]),
    "annotated without a value": ("s = 1\nif c:\n    s: int\nuse(s)", ["s@3"]),
    "a parameter": ("while c:\n    n = 2\nuse(n)", ["n@2"]),
    "the variable of a loop": ("for i in r:\n    for j in r:\n        i = 2\n    use(i)", ["i@3"]),
    "the other branch": ("s = 1\nif c:\n    s = 2\nelse:\n    use(s)", []),
    "after both branches": ("s = 1\nif c:\n    s = 2\nelse:\n    s = 3\nuse(s)", ["s@3", "s@5"]),
    "an inner branch": ("s = 1\nif c:\n    if d:\n        s = 2\n    use(s)", ["s@4"]),
    "the condition of a later if": ("s = 1\nif c:\n    s = 2\nif s:\n    pass", ["s@3"]),
    "the condition of a later while": ("s = 1\nif c:\n    s = 2\nwhile s:\n    pass", ["s@3"]),
    "the condition of its own while": ("s = 1\nwhile s:\n    s = 2", []),
    "the range of a later loop": ("s = 1\nif c:\n    s = 2\nfor i in range(s):\n    pass", ["s@3"]),
    "a with": ("s = 1\nwith b:\n    s = 2\nuse(s)", ["s@3"]),
    "the head of a later with": ("s = 1\nif c:\n    s = 2\nwith b(s) as q:\n    pass", ["s@3"]),
    "the name of a with": ("with b as s:\n    if c:\n        s = 2\n    use(s)", ["s@3"]),
    "a name that a with binds anew": ("s = 1\nif c:\n    s = 2\nwith b as s:\n    use(s)", []),
    "one of two names": ("s = t = 1\nif c:\n    s, t = 2, 3\nuse(t)", ["t@3"]),
    "an element of a buffer": ("s = 1\nfor i in r:\n    s[0] = 2\nuse(s)", []),
    "the index of an element": ("s = 1\nif c:\n    s = 2\na[s] = 3", ["s@3"]),
    "a message": ("s = 1\nif c:\n    s = 2\nassert s, 'x'", ["s@3"]),
    "a return": ("s = 1\nif c:\n    s = 2\nreturn s", ["s@3"]),
    "a bare expression": ("s = 1\nif c:\n    s = 2\nuse(x, k=s)", ["s@3"]),
    "a name of the same loop": ("for i in r:\n    s = 1\n    s = 2\nfor i in r:\n    use(s)", []),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_assignments_whose_variable_python_reads_later(name):
    body, wanted = ROWS[name]
    assert hidden(body) == wanted


def test_an_assignment_that_shadows_nothing_is_never_reported():
    function = ast.parse("def f():\n    s = 1\n    for i in r:\n        s = 2\n    use(s)").body[0]
    assert list(shadowing.find(function, [])) == []


def test_the_outer_definition_is_the_last_before():
    text = "def f(n):\n    s = 1\n    s = 2\n    for i in r:\n        s = 3\n    use(s)"
    function = ast.parse(text).body[0]
    inner = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    ((node, name, outer),) = shadowing.find(function, inner)
    assert (node.lineno, name, outer.lineno) == (5, "s", 3)
