"""Names that compiled code may use and does not define: their addresses in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

from weft.runtime.call.abi import address_of

_LIBRARIES: Final = (None, "libm.so.6", "libgcc_s.so.1", "libc.so.6")
"""Where external functions are looked up: the process itself, then the system's libraries."""

_bound: Final[dict[str, int]] = {}

BOUND: Final[Mapping[str, int]] = MappingProxyType(_bound)
"""The address of each name that was bound."""


def add_symbol(name: str, address: int) -> None:
    """Bind an external name for all code that is loaded from now on."""
    _bound[name] = address


_SUBSTITUTED: Final[ContextVar[Mapping[str, int] | None]] = ContextVar("substituted", default=None)


@contextmanager
def substituted(addresses: Mapping[str, int]) -> Iterator[None]:
    """Code that this thread loads inside of the block gets these addresses for these names.

    So code can be watched from between it and a service (``weft.runtime.threads.watched``).
    """
    token = _SUBSTITUTED.set(addresses)
    try:
        yield
    finally:
        _SUBSTITUTED.reset(token)


def addresses_now() -> Mapping[str, int]:
    """The address of each name for code that is loaded now."""
    other = _SUBSTITUTED.get()
    return {**_bound, **other} if other else BOUND


def bind_external(name: str) -> bool:
    """Bind an external name to a function of the process or of the system; False if none has it."""
    if name in _bound:
        return True
    for library in _LIBRARIES:
        try:
            function = getattr(ctypes.CDLL(library), name)
        except (OSError, AttributeError):
            continue
        add_symbol(name, address_of(function))
        return True
    return False
