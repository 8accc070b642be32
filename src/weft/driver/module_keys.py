"""What tells one IRModule from another, for the cache of models (weft.driver.model_cache).

The JSON of a module holds all that decides what it becomes: structure, names, attributes, who made
a function; its arrays are digested beside it. A module that has no JSON (a user's object among its
attributes), or that calls operators whose rules are not weft's own, has no key.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np

from weft.ir.json_text import save_json
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.op.lowering import TeRule
from weft.runtime.ndarray import NDArray
from weft.support import plugins, slots
from weft.support.errors import IRTypeError

_LIBRARIES: Final = {
    "builtins": b"", "math": b"", "numpy": np.__version__.encode(), "operator": b"",
}  # fmt: skip
"""Modules whose functions rules may name, and what tells them from others of the name."""
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

    def aside(value: object) -> int | None:
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
    operators = [Op.get(name) for name in sorted(set(_OPERATOR.findall(text)))]
    rules = digest_of_rules([rule for item in operators for rule in item.attributes.values()])
    if rules is None:
        return None
    digest.update(rules)
    digest.update(text.encode())
    return digest.digest()


def digest_of_rules(rules: Iterable[object]) -> bytes | None:
    """What tells the functions among some values; None where one is neither weft's nor a plug-in's.

    Nothing is told of weft's own, whose sources a key has anyway.
    """
    modules = {function.__module__ for rule in rules for function in _functions(rule)}
    digests = [_LIBRARIES.get(name, plugins.digest_of(name)) for name in sorted(modules)]
    return None if None in digests else b"".join(digest or b"" for digest in digests)


def _functions(rule: object) -> Iterator[Callable[..., object]]:
    """The functions that a rule calls."""
    if isinstance(rule, TeRule):
        yield from _functions(rule.te)
    elif isinstance(rule, functools.partial):
        for part in (rule.func, *rule.args, *rule.keywords.values()):
            yield from _functions(part)
    elif callable(rule):
        yield rule
