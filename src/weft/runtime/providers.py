"""Functions that programs call by name and that need another package: operators of a framework.

A program that was compiled with ``fallback="torch"`` or ``fallback="onnxruntime"`` calls them. Who
only loads such a program has not imported that package; the runtime does it, at the load where it
reads of such a call, so that a missing package is an error there and not in the first inference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from weft.runtime.vm.bytecode import CALLS, Instruction, VMFunction
from weft.support import slots
from weft.support.errors import UnsupportedError

CALL_OPERATOR: Final = "weft.torch.call_operator"
"""The packed function that runs one operator: (description, tensors ..., destinations ...)."""
RUN_NODE: Final = "weft.onnxruntime.run_node"
"""The packed function that runs one node of an ONNX model: (description, tensors ...)."""


@dataclass(frozen=True)
class Provider:
    """A package whose operators programs call: its name, how it is imported and installed.

    ``registers`` says whether the import registers the functions (else the virtual machine does).
    """

    title: str
    module: str
    fallback: str
    load: Callable[[], object]
    registers: bool


def _onnxruntime() -> ModuleType:
    import onnxruntime  # noqa: PLC0415 - an optional package, imported where it is used

    package: ModuleType = onnxruntime
    return package


_TORCH: Final = Provider("PyTorch", "torch", "torch", slots.torch_fallback.get, registers=True)
_ONNXRUNTIME: Final = Provider(
    "ONNX Runtime", "onnxruntime", "onnxruntime", _onnxruntime, registers=False
)
_PROVIDERS: Final = {CALL_OPERATOR: _TORCH, RUN_NODE: _ONNXRUNTIME}


def provide(name: str, used: str = "") -> bool:
    """Import what registers the global function ``name``; False if nothing is known to.

    ``used`` says what of it is needed. Raises UnsupportedError where the package is missing.
    """
    provider = _PROVIDERS.get(name)
    if provider is None:
        return False
    try:
        provider.load()
    except ImportError as error:
        raise UnsupportedError(
            f"the model needs {provider.title}{f' for {used}' if used else ''}, as it was compiled "
            f'with fallback="{provider.fallback}"; found no module {provider.module}: '
            f"pip install {provider.module}"
        ) from error
    return provider.registers


def provide_for(functions: Iterable[VMFunction]) -> None:
    """What the bytecode of these functions calls, imported before the first call."""
    used: dict[str, set[str]] = {}
    for function in functions:
        for name, operator in _operators(function.code):
            used.setdefault(name, set()).add(operator)
    for name, operators in used.items():
        provide(name, ", ".join(sorted(operators)[:4]))


def _operators(code: Iterable[Instruction]) -> Iterator[tuple[str, str]]:
    """(global function, operator) of every call of an operator of another package."""
    for instruction in code:
        if instruction[0] not in CALLS:
            continue
        kind, name = instruction[2][:2]
        if kind == "packed" and name in _PROVIDERS:
            form, description = instruction[3][0][:2]
            if form == "value":
                operator = str(json.loads(description)["operator"])
                yield str(name), operator.removesuffix(".default")
