"""Texts that come from a file are arithmetic over names, or they are refused."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.extent import evaluate, names_in
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes


@pytest.mark.parametrize(
    "text",
    ["n.real", "open('x')", "[n]", "n ** n", "n << 9", "'a' * n", "1.5", "n\n", "n #", "min(a=n)",
     "lambda: n", "(" * 900 + "n" + ")" * 900],
)  # fmt: skip
def test_a_text_that_is_no_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(weft.TVMError, match="expected .*integer"):
        names_in(text)
    with pytest.raises(weft.TVMError, match="expected .*integer"):
        evaluate(text, {"n": 2})


@pytest.mark.parametrize("name", ["n=print()", "n, *m", "lambda", "", 3])
def test_a_symbol_of_planned_sizes_is_a_name(name: Any) -> None:
    with pytest.raises(weft.TVMError, match=r"planned sizes: expected the name of a symbol, got"):
        PlannedSizes((name,), (), ())


@pytest.mark.parametrize(
    "fields",
    [{"arena": "print()"}, {"limits": (("n", "print()"),)}, {"result": ("output", "0] + [0")},
     {"layout": (("tuple", (("leaf", "0 = print()"),)),)}],
)  # fmt: skip
def test_a_number_of_a_native_entry_is_a_number(fields: dict[str, Any]) -> None:
    with pytest.raises(weft.TVMError, match=r"f: expected a whole number in its native entry, got"):
        NativeEntry(**{"spec": FunctionSpec("f"), "outputs": (), "result": ("tuple", ()), **fields})


def test_a_half_precision_number_arrives_as_it_is() -> None:
    for dtype in ("float16", "bfloat16"):
        x = weft.tir.Var("x", dtype)
        filled = weft.tir.decl_buffer((4,), dtype, name="A")
        axis = weft.tir.Var("i", "int32")
        body = weft.tir.For(
            axis, 0, 4, weft.tir.ForKind.SERIAL, weft.tir.BufferStore(filled, x, [axis])
        )
        handle = weft.tir.Var("a", "handle")
        func = weft.tir.PrimFunc([x, handle], body, buffer_map={handle: filled})
        result = weft.nd.empty((4,), dtype)
        weft.build(func)["main"](1.5, result)
        assert (result.numpy().astype("float32") == 1.5).all()
