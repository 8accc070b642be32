"""A digest of the code generator as it is in memory, which a test or a user may have patched.

The sources on disk say what the generator was when it was imported (weft.codegen.cache). Who puts
another function into a module, a method into a class or a row into a table of weft.codegen.llvm or
weft.tir.lowering changes the code that comes out of the same program, so that the key of a cache
has to change, too.

What is looked at: the values of the package's modules, of its classes and of its tables. A subclass
of dict is a memo, which grows as it is used: what it holds is left out. A function of weft's counts
by its place in the sources and its closure, another by its bytecode, constants, default values and
closure, so that the digest is the same in every process. As long as all these values are the same
objects, the last digest is given again.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any, Final

from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.support.lazy_property import lazy_property

_PACKAGES: Final = ("weft.codegen.llvm", "weft.tir.lowering")
_PLAIN: Final = (str, bytes, int, float, complex, bool, type(None), type(Ellipsis), Enum, DataType)
_SIMPLE: Final = frozenset((str, bytes, int, float, bool, type(None)))
_DEEPEST: Final = 12
"""Values within values, beyond which only their types count."""


class _Watch:
    """The containers whose values are looked at, what they held last, and the digest of that."""

    def __init__(self) -> None:
        self.containers: list[Container] = []
        self.values: list[object] = []
        self.digest = b""

    def current(self) -> bytes:
        """The digest of what the containers hold now."""
        if not self.containers:
            self.containers = list(_containers())
        values = self._held()
        if len(values) != len(self.values) or not all(map(operator.is_, values, self.values)):
            self.containers = list(_containers())
            self.values, self.digest = self._held(), _digest_of(self.containers)
        return self.digest

    def _held(self) -> list[object]:
        held: list[object] = []
        for container in self.containers:
            held.extend(container.values())
        held.extend([value.__code__ for value in held if type(value) is FunctionType])
        return held


Container = Mapping[Any, object]
"""Names or, in a table, any keys, with values that decide what code comes out."""
_WATCH: Final = _Watch()


def generator_digest() -> bytes:
    """The digest; it differs from that of another process only if one of both is patched."""
    return _WATCH.current()


def _containers() -> Iterator[Container]:
    """The dictionaries of the package's modules and classes, and its tables, each once."""
    met: set[int] = set()
    for name in sorted(sys.modules):
        module = sys.modules[name]
        if not _is_of_generator(name):
            continue
        yield vars(module)
        for key, value in vars(module).items():
            if key.startswith("__") or id(value) in met:
                continue
            met.add(id(value))
            if isinstance(value, type):
                if _is_of_generator(value.__module__):
                    yield vars(value)
            elif type(value) is dict:
                yield value
            elif isinstance(value, SimpleNamespace):
                yield vars(value)


def _is_of_generator(name: str) -> bool:
    """Whether a module is one of the code generator or of the passes right before it."""
    return any(name == package or name.startswith(package + ".") for package in _PACKAGES)


def _digest_of(containers: list[Container]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for container in containers:
        for key, value in _in_order(container):
            is_of_python = isinstance(key, str) and key.startswith("__")
            if not is_of_python or type(value) is FunctionType:
                digest.update(f"{_text(key)}={_text(value)}\n".encode(errors="surrogatepass"))
    return digest.digest()


def _in_order(container: Container) -> Iterable[tuple[Any, object]]:
    """The names of a module or a class by the alphabet, the rows of a table as they stand.

    A package gets the names of its modules in the order in which they are imported.
    """
    if "__spec__" in container or "__module__" in container:
        return sorted(container.items(), key=operator.itemgetter(0))
    return container.items()


def _text(value: object, depth: int = 0) -> str:
    """What a value is, in words that are the same in every process."""
    kind = type(value)
    if kind in _SIMPLE:
        return f"{kind.__name__}:{value!r}"
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, CodeType):
        return code_text(value)
    if isinstance(value, _PLAIN):
        return f"{name}:{value!r}"
    if isinstance(value, Op):
        return f"{name}:{value.name}"
    if isinstance(value, (ModuleType, type, BuiltinFunctionType)):
        own = getattr(value, "__qualname__", "")
        return f"{name}:{getattr(value, '__module__', '')}.{own or value.__name__}"
    if isinstance(value, re.Pattern):
        return f"{name}:{value.pattern!r}:{value.flags}"
    if isinstance(value, FunctionType) and _is_written(value):
        cells = [_text(_content(cell), depth + 1) for cell in value.__closure__ or ()]
        return f"{value.__module__}:{value.__qualname__}:{value.__code__.co_firstlineno}:{cells}"
    parts = _parts(value) if depth < _DEEPEST else []
    return f"{name}:{kind.__name__}({', '.join([_text(part, depth + 1) for part in parts])})"


def code_text(code: CodeType) -> str:
    """Bytecode with the constants and names that it refers to; not where its source stands."""
    constants = [
        repr(constant) if type(constant) in _SIMPLE else _text(constant)
        for constant in code.co_consts
    ]
    return f"code:{code.co_code.hex()}:{constants}:{code.co_names}:{code.co_freevars}"


def _is_written(function: FunctionType) -> bool:
    """Whether a function is as the source of its module has it, which the sources' digest covers.

    What closes over a value is not: a factory of the module can make another one.
    """
    name = function.__module__ or ""
    file = getattr(sys.modules.get(name), "__file__", None)
    return name.startswith("weft.") and function.__code__.co_filename == file


def _parts(value: object) -> Sequence[object]:
    """What a value consists of, as far as that decides what a function does."""
    if isinstance(value, FunctionType):
        cells = [_content(cell) for cell in value.__closure__ or ()]
        return [value.__qualname__, value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, (staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, property):
        return [value.fget]
    if isinstance(value, lazy_property):
        return [value.function]
    if isinstance(value, (tuple, list)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted([_text(item) for item in value])
    if type(value) is dict:
        return [part for pair in value.items() for part in pair]
    wrapped = getattr(value, "__wrapped__", None)  # of functools.cache
    return [] if wrapped is None else [wrapped]


def _content(cell: CellType) -> object:
    try:
        content: object = cell.cell_contents
    except ValueError:  # not bound yet
        return None
    return content
