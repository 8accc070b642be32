"""Numbers for the names of LLVM's intrinsics, for programs that write a number.

TVM stores LLVM's own numbers, which change with every release of LLVM. weft keeps the name in the
program; a number is valid only in the process that asked for it.
"""

from __future__ import annotations

from typing import Final

from weft.support.errors import IRKeyError

_PREFIX: Final = "llvm."
_NAMES: Final[list[str]] = []


def lookup_id(name: str) -> int:
    """The number of an intrinsic's name, from 1 on; 0 for a text that names no intrinsic."""
    if not name.startswith(_PREFIX) or len(name) == len(_PREFIX):
        return 0
    if name not in _NAMES:
        _NAMES.append(name)
    return _NAMES.index(name) + 1


def name_of(number: int) -> str:
    """The name that ``lookup_id`` gave that number."""
    if not 0 < number <= len(_NAMES):
        raise IRKeyError(
            f"no LLVM intrinsic has been given the number {number} in this process; "
            "write its name, such as 'llvm.ctpop'"
        )
    return _NAMES[number - 1]
