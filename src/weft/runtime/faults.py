"""Faults: how an error crosses native frames (design.md 3.6).

Compiled code that fails calls ``weft_raise``, which stores the message here under a fresh code; the
code travels up through the native frames as their return value, and the checked wrapper pops the
exception and raises it. A Python exception of a callback travels the same way, as itself.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Final

from weft.runtime.call.abi import FaultKind, RaiseFunction, address_of
from weft.support.errors import RuntimeFault


class IndexFault(RuntimeFault, IndexError):
    """An index that comes from data lies outside of its buffer."""


class AllocationFault(RuntimeFault, MemoryError):
    """Compiled code got no memory."""


class DivisionFault(RuntimeFault, ZeroDivisionError):
    """Compiled code, or an extent that is computed for it, met an integer divisor of zero."""


_CLASSES: Final[dict[int, type[RuntimeFault]]] = {
    FaultKind.ASSERTION: RuntimeFault,
    FaultKind.INDEX: IndexFault,
    FaultKind.ALLOCATION: AllocationFault,
    FaultKind.DIVISION: DivisionFault,
}
_KEPT: Final = 1024
"""How many faults are kept at most: each thread of a parallel loop may leave one, of which only the
first is ever taken out."""
_LAST_CODE: Final = 2**31 - 1

# Single operations of dict and count are atomic, so no lock is needed, and none can be left locked
# in a forked child.
_pending: Final[dict[int, BaseException]] = {}
_counter: Final = itertools.count()


def store_fault(error: BaseException) -> int:
    """Keep ``error`` and return the code under which ``pop_fault`` gives it back."""
    code = next(_counter) % _LAST_CODE + 1
    _pending[code] = error
    if len(_pending) > _KEPT:
        for old in list(_pending)[:-_KEPT]:
            _pending.pop(old, None)
    return code


def pop_fault(code: int, where: str) -> BaseException:
    """The exception behind a fault code that the function ``where`` returned."""
    error = _pending.pop(code, None)
    if error is None:
        return RuntimeFault(f"{where}: the compiled code failed with the unknown code {code}")
    return error


def make_fault(kind: int, text: str, a: int = 0, b: int = 0) -> RuntimeFault:
    """The exception of that kind; ``{a}`` and ``{b}`` in the text become the numbers."""
    message = text.replace("{a}", str(a)).replace("{b}", str(b))
    return _CLASSES.get(kind, RuntimeFault)(message)


def _raise(kind: int, text: int | None, a: int, b: int) -> int:
    try:
        message = ctypes.string_at(text).decode("utf-8", "replace") if text else "failed"
        return store_fault(make_fault(kind, message, a, b))
    except BaseException as error:  # noqa: BLE001 - nothing may unwind into native frames
        return store_fault(error)


_callback: Final = RaiseFunction(_raise)
RAISE_ADDRESS: Final = address_of(_callback)
"""The native address of ``weft_raise``."""
