"""NativeLibrary: object code loaded into the process, and the functions in it.

Codegen hands over the bytes of a relocatable object and one ``FunctionSpec`` per function; this
module binds what the object calls (the services of abi.py, libm, user libraries), loads it, and
wraps each function with its checks. A function holds its library, so code lives as long as it can
be called; at interpreter exit nothing is freed, since a daemon thread may still run it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weft.runtime.call.abi import CALL_PACKED, RAISE, THREADED, address_of
from weft.runtime.call.callbacks import CALL_PACKED_ADDRESS
from weft.runtime.call.plan import plan_of
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.call.wrapper import make_binder, make_wrapper
from weft.runtime.faults import RAISE_ADDRESS
from weft.runtime.memory.allocation import keep_freed_memory
from weft.runtime.native.builtins_ir import BUILTINS, builtin_address
from weft.runtime.native.elf import read_object
from weft.runtime.native.externals import BOUND, add_symbol, bind_external
from weft.runtime.native.parts import load_code
from weft.runtime.registry import PackedFunc
from weft.runtime.threads.parallel import parallel_symbol
from weft.support.errors import CodegenError, IRKeyError, wrong_type
from weft.support.registration import refuse_second

__all__ = [
    "FunctionSpec",
    "NativeFunction",
    "NativeLibrary",
    "ParamSpec",
    "load_library",
    "register_extern",
]

_CFunction: Final[type] = ctypes.CFUNCTYPE(None).__mro__[1]
_keep_alive: list[object] = []


class NativeLibrary:
    """One object file in memory. ``name`` is for messages only."""

    __slots__ = ("__weakref__", "_loaded", "name", "symbols")

    def __init__(self, object_code: bytes, name: str = "") -> None:
        file = read_object(object_code)
        defined, undefined = (None, None) if file is None else file.symbol_names()
        self.name = name
        self.symbols = defined
        _bind_services(undefined, name)
        self._loaded = load_code(object_code)

    def address(self, symbol: str) -> int:
        """The native address of a function."""
        if self.symbols is not None and symbol not in self.symbols:
            raise IRKeyError(
                f"expected one of {', '.join(sorted(self.symbols))} in the object code, "
                f"got {symbol!r}"
            )
        address: int = self._loaded.address(symbol)
        if not address:
            raise IRKeyError(f"the object code has no function {symbol!r}")
        return address

    def function(self, spec: FunctionSpec) -> NativeFunction:
        """The function that ``spec`` describes, with its checks."""
        return NativeFunction(spec, self.address(spec.native_symbol), self)


class NativeFunction(PackedFunc):
    """A compiled function behind its checked wrapper; it keeps its library alive.

    The wrapper is made at the first call: most kernels of a model are called by native code alone.
    """

    __slots__ = ("address", "library", "spec")

    def __init__(self, spec: FunctionSpec, address: int, library: object = None) -> None:
        plan_of(spec)  # raises for parameters that no call can check
        self.name = spec.name
        self.spec = spec
        self.address = address
        self.library = library

    def __getattr__(self, name: str) -> Callable[..., object]:
        """``_call``, where it was not asked for before."""
        if name != "_call":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._call = make_wrapper(self.spec, self.address)
        return self._call

    def bind(self, *args: object) -> Callable[[], None]:
        """Check the arguments once and return the bare native call on them, for timing loops."""
        return make_binder(self.spec, self.address, self)(*args)


def register_extern(name: str, function: object, *, override: bool = False) -> None:
    """Make a native function callable from compiled code by name (``T.call_extern``).

    ``function`` is an address, or a ctypes function or callback, which is then kept alive.

    Raises:
        IRValueError: another function has that name, and ``override`` is not given.
    """
    if not isinstance(function, int | _CFunction):
        raise wrong_type(f"{name}: expected an address or a ctypes function", function)
    address = function if isinstance(function, int) else address_of(function)
    refuse_second("the native function", name, BOUND.get(name, address) != address, override)
    _keep_alive.append(function)
    add_symbol(name, address)


def load_library(path: str | Path) -> None:
    """Load a shared library, so that compiled code can call its functions by name."""
    try:
        _keep_alive.append(ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL))
    except OSError as error:
        raise CodegenError(f"cannot load the library {str(path)!r}: {error}") from error


def _bind_services(undefined: frozenset[str] | None, name: str) -> None:
    """Bind every external name; ``None``: the format is not ELF, so bind what could be meant."""
    add_symbol(RAISE, RAISE_ADDRESS)
    add_symbol(CALL_PACKED, CALL_PACKED_ADDRESS)
    if undefined is None:
        parallel_symbol()
        return
    if undefined & THREADED:
        parallel_symbol()
    if "aligned_alloc" in undefined:
        keep_freed_memory()
    services = THREADED | {RAISE, CALL_PACKED, "_GLOBAL_OFFSET_TABLE_"}
    missing = []
    for symbol in sorted(undefined - services):
        if bind_external(symbol):
            continue
        if symbol in BUILTINS:
            add_symbol(symbol, builtin_address(symbol))
        else:
            missing.append(symbol)
    if missing:
        raise CodegenError(
            f"{name or 'object code'}: expected external functions that this process has, found "
            f"none named {', '.join(missing)}; load their library with "
            "weft.runtime.load_library(path)"
        )
