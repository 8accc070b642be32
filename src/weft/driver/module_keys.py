"""Keys that identify IRModules, for the cache of models (``weft.driver.model_cache``).

A key is made of the module's JSON, which has everything that decides how it is compiled: structure,
names, attributes, and whether a user or the compiler wrote a function. Its arrays are digested
separately. A module has no key if it has no JSON (because of a user's object among its attributes),
or if it calls operators whose rules are not weft's own.
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
"""Module whose functions rules may use -> its version."""
_OPERATOR: Final = re.compile(r'\["Op", "([^"\\]+)"\]')
"""Matches an operator in a module's JSON. (Inside of a string, quotes follow a backslash.)"""


def key_of_ir(module: IRModule) -> bytes | None:
    """Bytes that identify a module with its constants; None if nothing does.

    >>> from weft import relax
    >>> from weft.ir.module import IRModule
    >>> x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    >>> module = IRModule({"main": relax.Function([x], x)})
    >>> key_of_ir(module) == key_of_ir(module)
    True
    """
    slots.module_json.get()  # loads the module that converts arrays to JSON
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
    """Bytes that identify the functions among some values.

    weft's own functions add nothing, since weft's sources are in every key. None if a function is
    neither weft's nor a plug-in's.
    """
    modules = {function.__module__ for rule in rules for function in _functions(rule)}
    digests = [_LIBRARIES.get(name, plugins.digest_of(name)) for name in sorted(modules)]
    return None if None in digests else b"".join(digest or b"" for digest in digests)


def _functions(rule: object) -> Iterator[Callable[..., object]]:
    """The functions that a rule consists of: itself, and those that it is made from."""
    if isinstance(rule, TeRule):
        yield from _functions(rule.te)
    elif isinstance(rule, functools.partial):
        for part in (rule.func, *rule.args, *rule.keywords.values()):
            yield from _functions(part)
    elif callable(rule):
        yield rule
