"""Metadata of printed scripts: values without literal syntax, as one JSON text, exact to the bit.

With ``show_meta=True`` the line ``metadata = tvm.ir.load_json(\"\"\"...\"\"\")`` is printed before
the script, which refers to entries as ``metadata["relax.expr.Constant"][0]``. The text is
``weft.ir.save_json`` of a map from each key to its list, so Python gives the line the same meaning;
the parser reads it with ``from_json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.ir.json_text import load_json, save_json
from weft.ir.node import Map, freeze
from weft.support.errors import IRValueError
from weft.tir import array_json  # noqa: F401 - arrays in JSON

PREFIX: Final = 'metadata = tvm.ir.load_json("""'


def to_statement(metadata: Mapping[str, Sequence[object]]) -> str:
    """The line of a script that defines ``metadata``."""
    text = to_json(metadata).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'{PREFIX}{text}""")'


def to_json(metadata: Mapping[str, Sequence[object]]) -> str:
    """The JSON text of the collected values, by key."""
    return save_json(freeze(metadata))


def from_json(text: str) -> Map[str, Any]:
    """The values by key; raises IRValueError for a text that ``to_json`` did not make."""
    content = load_json(text)
    if not isinstance(content, Map):
        raise IRValueError(f"metadata: expected a map of lists, got a {type(content).__name__}")
    return content
