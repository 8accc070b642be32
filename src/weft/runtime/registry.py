"""Global functions: Python callables under names that programs and compiled code call.

Compiled code finds them by name at the time of the call (calls.py), so a function registered anew
with ``override=True`` takes effect at once.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any, Final, TypeVar, overload

from weft.runtime.containers import String
from weft.runtime.providers import provide
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.public_entry import calls_of_callers, tell_fault
from weft.support.registration import refuse_second

F = TypeVar("F", bound=Callable[..., object])


class PackedFunc:
    """A callable of the runtime: a registered Python function or a compiled one."""

    __slots__ = ("__weakref__", "_call", "name")

    def __init__(self, function: Callable[..., object], name: str = "") -> None:
        if not callable(function):
            raise wrong_type("expected a callable", function)
        self._call = function
        self.name = name or getattr(function, "__name__", "")

    @calls_of_callers
    def __call__(self, *args: object, **kwargs: object) -> Any:
        if kwargs:
            raise IRTypeError(
                f"{self.name}: expected arguments by position, got the keywords {', '.join(kwargs)}"
            )
        try:
            return self._call(*args)
        except Exception as error:
            if isinstance(error, TypeError) and self._refuses(error):
                raise IRTypeError(f"{self.name}: {error}") from error
            tell_fault(error, f"the call of {self.name}")
            raise

    def _refuses(self, error: TypeError) -> bool:
        """Whether a function of weft cannot be called with these arguments: it never began."""
        traceback = error.__traceback__
        module = str(getattr(self._call, "__module__", ""))
        began = traceback is None or traceback.tb_next is not None
        return not began and module.partition(".")[0] == "weft"

    @property
    def is_global(self) -> bool:
        """Whether the global table has this object."""
        return _TABLE.get(self.name) is self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


_TABLE: Final[dict[str, PackedFunc]] = {}


@overload
def register_func(func_name: F, f: None = None, override: bool = False) -> F: ...
@overload
def register_func(func_name: str, f: F, override: bool = False) -> F: ...
@overload
def register_func(func_name: str, f: None = None, override: bool = False) -> Callable[[F], F]: ...


def register_func(func_name: object, f: object = None, override: bool = False) -> Any:
    """Register a global function: ``@register_func``, ``@register_func("name")``, or a call.

    A name that is taken is an error unless ``override`` is true.
    """
    if callable(func_name):
        name = getattr(func_name, "__name__", None)
        if name is None:
            raise IRTypeError(
                f"a {type(func_name).__name__} has no name of its own: call "
                "register_func('name', function)"
            )
        return _register(name, func_name, override)
    if not isinstance(func_name, str):
        raise wrong_type("expected the name of a function", func_name)
    if f is not None:
        return _register(func_name, f, override)

    def decorate(function: F) -> F:
        _register(func_name, function, override)
        return function

    return decorate


def _register(name: str, function: Any, override: bool) -> object:
    if not callable(function):
        raise wrong_type(f"{name}: expected a callable", function)
    if not name or "\0" in name:
        raise IRValueError(
            f"expected a name that is not empty and has no NUL characters, got {name!r:.80}: "
            "compiled code finds functions by it"
        )
    refuse_second("the global function", name, name in _TABLE, override)
    _TABLE[name] = function if type(function) is PackedFunc else PackedFunc(function, name)
    return function


@overload
def get_global_func(name: str) -> PackedFunc: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> PackedFunc | None: ...


def get_global_func(name: str, allow_missing: bool = False) -> PackedFunc | None:
    """The function registered under ``name``; None for a missing one if that is allowed."""
    if not isinstance(name, str):
        raise wrong_type("expected the name of a function", name)
    function = _TABLE.get(name)
    if function is None and provide(name):
        function = _TABLE.get(name)
    if function is None and not allow_missing:
        raise IRValueError(missing_function(name))
    return function


def missing_function(name: str) -> str:
    """The message for a name that is not registered, with the nearest names that are."""
    if name.startswith("runtime.disco."):
        return (
            f"cannot find global function {name!r}: weft runs programs on one worker; one that "
            f"runs them on several has to bring it, by weft.register_func({name!r})"
        )
    nearest = difflib.get_close_matches(name, _TABLE, n=3)
    hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
    return (
        f"cannot find global function {name!r}{hint or '; register it with'}"
        f"{'' if hint else f' weft.register_func({name!r})'}"
    )


def list_global_func_names() -> list[str]:
    """The names of all registered functions, sorted."""
    return sorted(_TABLE)


def remove_global_func(name: str) -> None:
    """Forget the function registered under ``name``."""
    if not isinstance(name, str) or name not in _TABLE:
        raise IRValueError(missing_function(name))
    del _TABLE[name]


def convert(value: object) -> Any:
    """The runtime's form of a Python value: str → String, callable → PackedFunc, else itself."""
    if isinstance(value, str):
        return String(value)
    if callable(value) and not isinstance(value, PackedFunc | type):
        return PackedFunc(value)
    return value
