"""llvmlite, imported when LLVM is first needed, its lock safe for forks.

Whatever uses llvmlite in the user's process gets it here: ``import weft.runtime`` stays light, and
no call of it is in progress in another thread when a process forks.
"""

from __future__ import annotations

import functools
from types import ModuleType

from weft.support.errors import CodegenError
from weft.support.forks import hold_over_forks


@functools.cache
def binding() -> ModuleType:
    """``llvmlite.binding`` with the native target initialised.

    Raises:
        CodegenError: llvmlite is not installed.
    """
    try:
        import llvmlite.binding as llvm  # noqa: PLC0415 - see above
    except ImportError as error:
        raise CodegenError("generating code needs llvmlite: pip install llvmlite") from error
    lock = getattr(llvm.ffi.lib, "_lock", None)
    if lock is not None:  # llvmlite holds it in every call; a forked child must find it free
        hold_over_forks(lock)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    loaded: ModuleType = llvm
    return loaded
