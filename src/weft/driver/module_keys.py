"""What tells one IRModule from another, for the cache of models (weft.driver.model_cache).

The JSON of a module holds all that decides what it becomes: structure, names, attributes, who made
a function; its arrays are digested beside it. A module that has no JSON (a user's object among its
attributes), or that calls operators whose rules are not weft's own, has no key.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

from weft.ir.json_text import save_json
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.runtime.ndarray import NDArray
from weft.support import slots
from weft.support.errors import IRTypeError

_OPERATOR: Final = re.compile(r'\["Op", "([^"\\]+)"\]')
"""An operator in the JSON of a module; within a text, quotes stand behind a backslash."""


def key_of_ir(module: IRModule) -> bytes | None:
    """Bytes that tell a module with its constants; None where nothing tells it.

    >>> from weft import relax
    >>> from weft.ir.module import IRModule
    >>> x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    >>> module = IRModule({"main": relax.Function([x], x)})
    >>> key_of_ir(module) == key_of_ir(module)
    True
    """
    slots.module_json.get()  # the JSON of arrays is its owner's
    digest = hashlib.blake2b(digest_size=20)
    count = 0

    def aside(value: Any) -> int | None:
        nonlocal count
        if not isinstance(value, NDArray):
            return None
        digest.update(value.structural_bytes())
        count += 1
        return count - 1

    try:
        text = save_json(module, aside=aside)
    except IRTypeError:
        return None
    if not all(_is_ours(Op.get(name)) for name in set(_OPERATOR.findall(text))):
        return None
    digest.update(text.encode())
    return digest.digest()


def _is_ours(operator: Op) -> bool:
    """Whether every rule that hangs on an operator is weft's own."""
    rules = [getattr(rule, "func", rule) for rule in operator.attributes.values()]  # of partials
    return all(rule.__module__.startswith("weft.") for rule in rules if callable(rule))
