"""What the caller of an exported model gives and gets, whatever language the call is written in.

``weft.runtime.export.library_source`` prints such a call as C, ``weft.backends.wasm.module_text``
as JavaScript.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.runtime.call.plan import CallPlan, Open, plan_of_entry
from weft.runtime.model.signature import Signature, places
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import NativeEntry

Item = tuple[str, Any]
"""What a result is made of, and its parts: ``Result`` of weft.runtime.vm.bytecode."""


@dataclass(frozen=True)
class Result:
    """One tensor that a caller gets: where it comes from, its type, its extents."""

    name: str
    source: Item
    dtype: str
    shape: tuple[int | str, ...]


class DescribedCall:
    """The inputs and results of one model, by the plan of its native entry.

    Args:
        signature: how the model is called.
        entry: its native function.
        states: the tensors that the model keeps between calls.
    """

    def __init__(self, signature: Signature, entry: NativeEntry, states: Sequence[NDArray]) -> None:
        self.signature, self.plan = signature, plan_of_entry(entry)
        self.state_sizes = [state._array.nbytes for state in states]
        self.shapes = [state.shape for state in states]
        self.inputs = [take.param for take in self.plan.takes]
        self.states = [state.input for state in signature.states]
        self.names = _leaf_names(signature, self.plan)
        self.results = self._results()

    @property
    def public(self) -> list[int]:
        """The inputs that a caller gives: all but the states."""
        return [i for i in range(len(self.inputs)) if i not in self.states]

    def items(self) -> list[tuple[str, object]]:
        """The outputs of ``main`` as the signature numbers them."""
        result = self.plan.result
        if self.signature.unpacked:
            return list(result[1])
        return [result]

    def _results(self) -> list[Result]:
        results: list[Result] = []
        items = self.items()
        for index, place in places(self.signature.result, ""):
            self._flatten(items[index], place.strip(".[]'\"") or "output", results)
        return results

    def _flatten(self, item: Item, name: str, results: list[Result]) -> None:
        kind, content = item
        if kind == "tuple":
            for number, part in enumerate(content):
                self._flatten(part, f"{name}_{number}", results)
        elif kind == "output":
            output = self.plan.outputs[content]
            results.append(Result(name, item, output.dtype, output.shape))
        elif kind == "input":
            param = self.inputs[content]
            results.append(Result(name, item, param.dtype, param.shape))
        elif kind == "shape":
            for number, extent in enumerate(content):
                results.append(Result(f"{name}_{number}", ("expr", extent), "int64", ()))
        else:
            results.append(Result(name, item, "int64", ()))


def _leaf_names(signature: Signature, plan: CallPlan) -> list[str]:
    """Names of the native inputs: the places in the model's call where each argument is one."""
    names = [take.param.name for take in plan.takes]
    is_nested = any(isinstance(step, Open) for step in plan.checks)
    return names if is_nested or len(signature.inputs) != len(names) else list(signature.inputs)
