"""How deep calls may be nested: activations of bytecode, and the machine stack of native recursion.

Native code that calls itself gets the lowest address that its frames may reach, and compares its
frame with it. Below that is room for kernels and for Python functions that are called back.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Final, NoReturn

from weft.runtime.registry import register_func
from weft.support.errors import RuntimeFault

MAX_DEPTH: Final = 50_000
"""How many activations may be open at once."""
RESERVE: Final = 1 << 20
"""Bytes of stack that recursion leaves free, or a quarter of a smaller stack."""
_ATTRIBUTES_BYTES: Final = 256  # pthread_attr_t has 56 on Linux


class _Kept(threading.local):
    floor: int = 0


_kept: Final = _Kept()


def stack_floor() -> int:
    """The lowest address that native recursion in this thread may reach."""
    if not _kept.floor:
        lowest, size = _stack()
        _kept.floor = lowest + min(RESERVE, size // 4)
    return _kept.floor


def _stack() -> tuple[int, int]:
    """The lowest address and the size of this thread's stack, as the system's threads have them."""
    library = ctypes.CDLL(None)
    library.pthread_self.restype = ctypes.c_void_p
    me = ctypes.c_void_p(library.pthread_self())
    if sys.platform == "darwin":
        library.pthread_get_stackaddr_np.restype = ctypes.c_void_p
        library.pthread_get_stacksize_np.restype = ctypes.c_size_t
        size = library.pthread_get_stacksize_np(me)
        return (library.pthread_get_stackaddr_np(me) or 0) - size, size
    attributes = ctypes.create_string_buffer(_ATTRIBUTES_BYTES)
    lowest, length = ctypes.c_void_p(), ctypes.c_size_t()
    code = library.pthread_getattr_np(me, attributes)
    if code == 0:
        library.pthread_attr_getstack(attributes, ctypes.byref(lowest), ctypes.byref(length))
        library.pthread_attr_destroy(attributes)
    if code or not lowest.value:
        raise RuntimeFault(
            "the size of this thread's stack is not known, so native code must not call itself; "
            "run the function with exec_mode='bytecode'"
        )
    return lowest.value, length.value


def too_deep(name: str, depth: int) -> NoReturn:
    """The error of native code whose calls are nested as deep as they may be."""
    if depth >= MAX_DEPTH:
        raise RuntimeFault(
            f"{name}: calls are nested more than {MAX_DEPTH} deep; a recursion needs an end"
        )
    raise RuntimeFault(
        f"{name}: calls are nested {depth} deep, and this thread's stack holds no more; a "
        "recursion needs an end, or a thread with a larger stack (threading.stack_size), or "
        "exec_mode='bytecode'"
    )


register_func("vm.builtin.too_deep", too_deep, override=True)
