"""Functions that programs call by name and that come with another package: PyTorch's operators.

A program that was compiled with ``fallback="torch"`` calls them. Who only loads such a program has
not imported what registers them; the runtime does it, at the load where it reads of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from weft.runtime.vm.bytecode import Instruction, VMFunction
from weft.support import slots
from weft.support.errors import UnsupportedError

CALL_OPERATOR: Final = "weft.torch.call_operator"
"""The packed function that runs one operator: (description, tensors ..., destinations ...)."""


def provide(name: str, used: str = "") -> bool:
    """Import what registers the global function ``name``; False if nothing is known to.

    ``used`` says what of it is needed. Raises UnsupportedError where the package is missing.
    """
    if name != CALL_OPERATOR:
        return False
    try:
        slots.torch_fallback.get()
    except ImportError as error:
        raise UnsupportedError(
            f"the model needs PyTorch{f' for {used}' if used else ''}, as it was compiled with "
            "fallback=\"torch\"; found no module torch: pip install torch"
        ) from error
    return True


def provide_for(functions: Iterable[VMFunction]) -> None:
    """What the bytecode of these functions calls, imported before the first call."""
    used = {name for function in functions for name in _operators(function.code)}
    if used:
        provide(CALL_OPERATOR, ", ".join(sorted(used)[:4]))


def _operators(code: Iterable[Instruction]) -> Iterator[str]:
    for instruction in code:
        if instruction[0] == "call" and instruction[2] == ("packed", CALL_OPERATOR):
            kind, description = instruction[3][0][:2]
            if kind == "value":
                yield str(json.loads(description)["operator"]).removesuffix(".default")
