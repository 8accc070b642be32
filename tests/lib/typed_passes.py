"""Passes under test: after each, what a graph says of its values is what the rules say.

``every_pass_typed`` is what this repository's tests run under. It lies around ``Pass._run`` for as
long as it is open. Users have the same check in ``PassContext(verify=True)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from weft.ir.module import IRModule
from weft.ir.transform import Pass, PassContext
from weft.relax.analysis.bindings import bindings_in_order
from weft.relax.analysis.types import binding_problem, type_problem
from weft.relax.expr import Function


class _Checked:
    """The bindings that were found right. They are kept, so that no other one gets their place.

    A pass rebuilds what it changes and keeps the rest, so that few bindings are new.
    """

    def __init__(self) -> None:
        self.right: dict[int, Any] = {}

    def problem(self, mod: IRModule) -> str | None:
        """What is wrong with the types of a module: of calls of its functions, of new bindings."""
        graphs = {var: func for var, func in mod.functions.items() if isinstance(func, Function)}
        found = type_problem(mod)
        if found is not None:
            return found
        for var, func in graphs.items():
            if id(func) in self.right:
                continue
            for binding in bindings_in_order(func):
                if id(binding) in self.right:
                    continue
                found = binding_problem(binding, mod, reinfer=True)
                if found is not None:
                    return f"{var.name_hint}: {found}"
                self.right[id(binding)] = binding
            self.right[id(func)] = func
        return None


@contextmanager
def every_pass_typed() -> Iterator[None]:
    """Raise AssertionError after a pass that makes a graph with types that disagree.

    A pass is not blamed for what it was given.
    """
    checked = _Checked()
    run = Pass._run

    def typed(self: Pass, mod: IRModule, context: PassContext) -> IRModule:
        result = run(self, mod, context)
        if result is not mod:
            problem = checked.problem(result)
            if problem is not None and type_problem(mod, reinfer=True) is None:
                raise AssertionError(f"{self.info.name} leaves types that disagree: {problem}")
        return result

    with mock.patch.object(Pass, "_run", typed):
        yield
