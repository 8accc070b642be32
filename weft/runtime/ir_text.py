"""What the runtime's own LLVM IR texts are written with: fields of structs by name, constants."""

from __future__ import annotations

import re
from collections.abc import Mapping

Structs = Mapping[str, Mapping[str, str]]
"""The types of the fields of each struct, by name and in order."""


def expanded(text: str, structs: Structs, values: Mapping[str, object]) -> str:
    """The text as LLVM reads it.

    ``field s.x`` is the address of the field ``x`` of a struct of type ``%s`` that ``%s`` points
    to, ``@NAME@`` one of the values.

    >>> expanded("%at = field pair.second ; @N@", {"pair": {"first": "i32", "second": "ptr"}},
    ...          {"N": 2})
    '%at = getelementptr %pair, ptr %pair, i32 0, i32 1 ; 2'
    """

    def field(found: re.Match[str]) -> str:
        struct, name = found.groups()
        number = list(structs[struct]).index(name)
        return f"getelementptr %{struct}, ptr %{struct}, i32 0, i32 {number}"

    made = re.sub(r"field (\w+)\.(\w+)", field, text)
    for name, value in values.items():
        made = made.replace(f"@{name}@", str(value))
    return made
