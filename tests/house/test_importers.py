"""Importers define no operators of their own: what they compute with is relax's (docs/design/0015).

A tensor expression that an importer turns into a kernel is seen by no layout, no trait and no
reference. It becomes a row of an operator (docs/recipes/add-an-operator.md), or a composition.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.lib.syntax import nodes_of

FRONTEND = Path("src/weft/relax/frontend")
KERNELS = {"call_te", "emit_te", "te"}
NO_OPERATOR = {
    "nn/op/call.py": (1, "a tensor expression that the user of nn brings"),
    "onnx/loop_rows.py": (1, "a row that is written over what a tensor had: operators are pure"),
    "onnx/value.py": (1, "a tensor of the dimensions that the importer reckons with"),
}
"""Sites that stay, each with its reason."""


def kernels_of(tree):
    """How many calls of a file make a kernel of a tensor expression."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in KERNELS
        for node in nodes_of(tree)
    )


def test_importers_define_no_operators(weft_sources):
    found = Counter({
        source.path.relative_to(FRONTEND).as_posix(): kernels_of(source.tree)
        for source in weft_sources if FRONTEND in source.path.parents
    })  # fmt: skip
    allowed = {name: number for name, (number, _) in NO_OPERATOR.items()}
    wrong = [
        f"{name}: {found[name]} kernels, the table says {allowed.get(name, 0)}"
        for name in sorted({*found, *allowed}) if found[name] != allowed.get(name, 0)
    ]  # fmt: skip
    assert not wrong, "write a row under weft/relax/op, or compose operators:\n" + "\n".join(wrong)


def test_a_kernel_is_seen():
    lines = ("builder.call_te(topi.exp, x)", "self.builder.emit_te(f)", "context.te(f, x.expr)")
    assert [kernels_of(ast.parse(line)) for line in lines] == [1, 1, 1]
    assert kernels_of(ast.parse("context.emit(op.exp(x)); te.compute(shape, f)")) == 0
