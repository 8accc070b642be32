"""What the runtime's own LLVM IR texts are written with: fields of structs by name, constants."""

from __future__ import annotations

import re
from collections.abc import Mapping

Structs = Mapping[str, Mapping[str, str]]
"""The types of the fields of each struct, by name and in order."""


def expanded(text: str, structs: Structs, values: Mapping[str, object]) -> str:
    """The text as LLVM reads it.

    ``field s.x`` is the address of the field ``x`` of a struct of type ``%s`` that ``%s`` points
    to; ``%v = read s.x`` puts that into ``%v.at`` and what stands there into ``%v``; ``@NAME@`` is
    one of the values.

    >>> structs = {"pair": {"first": "i32", "second": "ptr"}}
    >>> expanded("%at = field pair.second ; @N@", structs, {"N": 2})
    '%at = getelementptr %pair, ptr %pair, i32 0, i32 1 ; 2'
    >>> print(expanded("  %v = read pair.first", structs, {}))
      %v.at = getelementptr %pair, ptr %pair, i32 0, i32 0
      %v = load i32, ptr %v.at
    """

    def read(found: re.Match[str]) -> str:
        value, struct, name = found.groups()
        kind = structs[struct][name]
        return f"%{value}.at = field {struct}.{name}\n  %{value} = load {kind}, ptr %{value}.at"

    def field(found: re.Match[str]) -> str:
        struct, name = found.groups()
        number = list(structs[struct]).index(name)
        return f"getelementptr %{struct}, ptr %{struct}, i32 0, i32 {number}"

    text = re.sub(r"%([\w.]+) = read (\w+)\.(\w+)", read, text)
    made = re.sub(r"field (\w+)\.(\w+)", field, text)
    for name, value in values.items():
        made = made.replace(f"@{name}@", str(value))
    return made
