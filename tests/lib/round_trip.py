"""The law of texts: what is printed, or written as JSON, gives back what it was made of.

``parse(print(x, show_meta=True))`` and ``load_json(save_json(x))`` are structurally equal to ``x``.
"""

from __future__ import annotations

from tests.lib.text_normal_form import text_normal_form
from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.json_text import load_json, save_json
from weft.ir.node import Node
from weft.ir.structural import first_difference, structural_digest
from weft.relax.expr import Var as RelaxVar
from weft.script.parser.entry import from_source
from weft.support.errors import VerifyError
from weft.tir.buffer import Buffer
from weft.tir.expr import Var


def form_of(function: Node) -> tuple[bytes, tuple[str, ...]]:
    """What the text of a function is made of: its structure and the names in it."""
    names = [buffer.name for buffer in collect(function, Buffer)]
    names += [var.name for var in collect(function, Var)]
    names += [var.name_hint for var in collect(function, RelaxVar)]
    names += [var.name_hint for var in collect(function, GlobalVar)]
    return structural_digest(function, map_free_vars=True), tuple(names)


def assert_round_trip(node: Node) -> None:
    """Print a module or a function, parse the text, and compare; then the same through JSON.

    Raises VerifyError with the path of the first difference and the text.
    """
    assert_text_round_trip(node)
    assert_json_round_trip(node)


def assert_text_round_trip(node: Node) -> None:
    """Print and parse, and compare."""
    text = node.script(show_meta=True)
    parsed = from_source(text, check_well_formed=False)
    mismatch = first_difference(parsed, text_normal_form(node), map_free_vars=True)
    if mismatch is not None:
        raise VerifyError(
            f"the text does not give back what was printed, at {mismatch.path}: {mismatch.reason}\n"
            f"parsed: {mismatch.lhs}\nprinted: {mismatch.rhs}\n{text}"
        )


def assert_json_round_trip(node: Node) -> None:
    """Write as JSON and read, and compare."""
    mismatch = first_difference(load_json(save_json(node)), node, map_free_vars=True)
    if mismatch is not None:
        raise VerifyError(
            f"JSON does not give back what was written, at {mismatch.path}: {mismatch.reason}\n"
            f"read: {mismatch.lhs}\nwritten: {mismatch.rhs}\n{node.script(show_meta=True)}"
        )
