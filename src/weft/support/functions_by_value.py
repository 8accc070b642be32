"""Pickles of functions that another process cannot import: local ones, lambdas, those of a script.

``pickle`` writes the name of a function. Here a function whose name does not lead to it in another
process is written by value: its code, its defaults, what its closure holds, and the global names
that it uses. The process that reads it must run the same Python; ``pickle.loads`` does.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from weft.support.errors import IRTypeError


def dumps(value: object) -> bytes:
    """A pickle of a value. Raises IRTypeError where a part of it cannot be written.

    >>> import pickle
    >>> from weft.support.functions_by_value import dumps
    >>> offset = 3
    >>> pickle.loads(dumps(lambda x: x + offset))(4)
    7
    """
    file = io.BytesIO()
    try:
        _Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except (pickle.PicklingError, TypeError, AttributeError, ValueError) as error:
        raise IRTypeError(
            f"{getattr(value, '__qualname__', value)!r:.200} cannot be sent to another process: "
            f"{error}; use functions that hold plain values alone"
        ) from error
    return file.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        if isinstance(obj, FunctionType) and not _is_importable(obj):
            state = {
                "globals": _globals_of(obj),
                "closure": [cell.cell_contents for cell in obj.__closure__ or ()],
                "defaults": obj.__defaults__,
                "kwdefaults": obj.__kwdefaults__,
                "qualname": obj.__qualname__,
            }
            code = marshal.dumps(obj.__code__)
            cells = len(obj.__closure__ or ())
            return _function, (code, obj.__name__, obj.__module__, cells), state, None, None, _fill
        return NotImplemented


def _is_importable(function: FunctionType) -> bool:
    """Whether module and name lead to the function in another process with the same path."""
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ == "__main__" or "<" in function.__qualname__:
        return False
    value: object = module
    for name in function.__qualname__.split("."):
        value = getattr(value, name, None)
    return value is function and _is_on_the_path(function.__module__)


def _is_on_the_path(name: str) -> bool:
    path, spec = None, None
    for depth in range(1, name.count(".") + 2):
        spec = PathFinder.find_spec(".".join(name.split(".")[:depth]), path)
        if spec is None:
            return name in sys.builtin_module_names
        path = spec.submodule_search_locations
    return True


def _globals_of(function: FunctionType) -> dict[str, object]:
    names = _names_in(function.__code__)
    return {name: value for name, value in function.__globals__.items() if name in names}


def _names_in(code: CodeType) -> set[str]:
    inner = (_names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def _function(code: bytes, name: str, module: str, cells: int) -> FunctionType:
    """A function without the values that it uses, which ``_fill`` gives it."""
    closure = tuple([CellType() for _ in range(cells)])
    namespace = {"__name__": module, "__builtins__": __builtins__}
    return FunctionType(marshal.loads(code), namespace, name, None, closure)


def _fill(function: FunctionType, state: Mapping[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__qualname__ = state["qualname"]
    for cell, value in zip(function.__closure__ or (), state["closure"], strict=True):
        cell.cell_contents = value
