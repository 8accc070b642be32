"""Conversions that compilers expect from their support library, for systems whose own lacks them.

LLVM calls these by name where the processor has no instruction for it (builtins.ll).
"""

from __future__ import annotations

import functools
from typing import Any, Final

from weft.runtime.native.ir_files import ir_file
from weft.runtime.native.parts import load_part

BUILTINS: Final = frozenset({"__truncsfbf2", "__truncdfbf2"})
"""The names that ``builtin_address`` knows."""


def builtins_ir() -> str:
    """The module text."""
    return ir_file("native/builtins.ll")


@functools.cache
def _loaded() -> Any:
    return load_part(builtins_ir())


def builtin_address(name: str) -> int:
    """The native address of one of ``BUILTINS``."""
    address: int = _loaded().address(name)
    return address
