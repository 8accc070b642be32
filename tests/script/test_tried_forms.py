"""What tells a session that a function made its round trip: its structure and its names."""

from __future__ import annotations

import pytest

from tests.lib.round_trip import form_of
from weft import relax
from weft.script import from_source

KERNEL = """
@T.prim_func
def f(A: T.Buffer((4,), "float32"), n: T.int32):
    for i in range(4):
        A[i] = A[i] + T.float32(n)
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [(" i ", " j "), ("A", "B"), ("(n)", "(n + 1)"), ("n: T.int32", "n: T.int64"), ("4", "5")],
)
def test_a_name_or_another_structure_is_a_form_of_its_own(old, new):
    changed = KERNEL.replace(old, new).replace("[i]", "[j]" if new == " j " else "[i]")
    assert form_of(from_source(KERNEL)) == form_of(from_source(KERNEL))
    assert form_of(from_source(changed)) != form_of(from_source(KERNEL))


def test_names_of_graphs_count():
    def graph(param: str, bound: str) -> relax.Function:
        builder = relax.BlockBuilder()
        x = relax.Var(param, relax.TensorStructInfo((4,), "float32"))
        with builder.function("main", [x]):
            result = relax.Var(bound, relax.TensorStructInfo((4,), "float32"))
            builder.emit_normalized(relax.VarBinding(result, relax.op.nn.relu(x)))
            builder.emit_func_output(result)
        return builder.get()["main"]

    forms = {form_of(graph(param, bound)) for param in ("x", "y") for bound in ("lv", "lv1")}
    assert len(forms) == 4
    assert form_of(graph("x", "lv")) in forms
