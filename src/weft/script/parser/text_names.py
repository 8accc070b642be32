"""The names of a text: ``T``, ``R``, ``I``, ``weft`` (``tvm``) and ``relax``, each a fixed table.

A text cannot get hold of a module: a ``Namespace`` has the functions and classes of the language,
and nothing that their modules import.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from weft.ir.node import Node
from weft.ir.op import Op
from weft.relax.op.definition import FUNCTIONS
from weft.script.ir_builder import relax as _relax
from weft.script.ir_builder import tir as _tir
from weft.script.ir_builder import tir_block, tir_loop, tir_statement, tir_value
from weft.script.ir_builder.tir_value import DTypeConstructor, HandleConstructor
from weft.support.errors import IRAttributeError
from weft.tir import expr as _nodes
from weft.tir import op as _operators

_LANGUAGE: Final = (tir_statement, tir_loop, tir_block, tir_value)
_HELPERS: Final = frozenset({"register_reducers", "register_statements"})
"""Functions of ``weft.tir.op`` that change global state, so that texts may not call them."""
_OWN_TIR: Final = frozenset(
    {
        "Buffer", "BufferRegion", "Range", "TVMBackendAllocWorkspace", "TVMBackendFreeWorkspace",
        "Target", "cast", "index_map", "llvm_lookup_intrinsic_id", "macro", "prim_func", "target",
    }
)  # fmt: skip
_OWN_RELAX: Final = frozenset(
    {
        "Call", "Callable", "CallableProxy", "Else", "If", "Object", "ObjectProxy", "Prim", "Range",
        "Shape", "ShapeProxy", "Tensor", "TensorProxy", "Then", "Tuple", "TupleProxy",
        "alloc_tensor", "arg", "call_builtin_with_ctx", "call_dps_packed", "call_inplace_packed",
        "call_packed", "call_pure_packed", "call_tir", "call_tir_inplace", "call_tir_with_grad",
        "const", "dataflow", "dtype", "emit", "emit_match_cast", "emit_te", "emit_var_binding",
        "func_attr", "func_name", "func_ret_struct_info", "func_ret_value", "function",
        "invoke_closure", "invoke_pure_closure", "is_impure", "is_pure", "macro", "match_cast",
        "output", "prim_value", "rewriter", "shape", "str", "tuple",
    }
)  # fmt: skip
_OWN_IR: Final = frozenset(
    {
        "Range", "dummy_global_info", "function_names", "ir_module", "module_attrs",
        "module_global_infos", "vdevice",
    }
)  # fmt: skip
_PACKAGE_IR: Final = frozenset(
    {
        "DummyGlobalInfo", "FloatImm", "GlobalVar", "IntImm", "PointerType", "PrimType", "Range",
        "StringImm", "TupleType", "VDevice",
    }
)  # fmt: skip


class Namespace:
    """The names below ``title``: ``holds`` has the names, ``find`` returns a value."""

    def __init__(
        self, title: str, holds: Callable[[str], bool], find: Callable[[str], object]
    ) -> None:
        self.title, self.holds, self.find = title, holds, find

    def lookup(self, name: str) -> object:
        """The value of a public name."""
        if not name.startswith("_") and self.holds(name):
            return self.find(name)
        if not name.startswith("_"):
            self._explain(name)
        raise IRAttributeError(f"{self.title}.{name} is no part of the language of a script's text")

    def _explain(self, name: str) -> None:
        """Raise the language's own error, which suggests similar names, if it has one."""
        if self.title in ("T", "R"):
            self.find(name)

    def __repr__(self) -> str:
        return f"<the names of {self.title}>"


@functools.cache
def tir_names() -> frozenset[str]:
    """What ``T`` offers, other than data types and registered intrinsics."""
    names = set(_OWN_TIR) | set(_tir._OTHER)
    for module in _LANGUAGE:
        members = vars(module).items()
        names.update(
            key for key, item in members if getattr(item, "__module__", "") == module.__name__
        )
    for name in dir(_operators):
        value = getattr(_operators, name)
        if isinstance(value, FunctionType) and value.__module__.startswith("weft.tir."):
            names.add(name)
    names.update(key for key, item in vars(_nodes).items() if _is_node_class(item))
    return frozenset(name for name in names - _HELPERS if not name.startswith("_"))


def _is_node_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Node)


def _in_tir(name: str) -> bool:
    if name in tir_names() or Op.is_registered(f"tir.{name}"):
        return True
    try:
        value = getattr(_tir, name)
    except AttributeError:
        return False
    return isinstance(value, DTypeConstructor | HandleConstructor)


@functools.cache
def relax_nodes() -> frozenset[str]:
    """The classes of nodes that ``R`` and ``relax`` offer."""
    nodes = {key for key, item in vars(_relax).items() if _is_node_class(item)}
    infos = importlib.import_module("weft.relax.struct_info")
    nodes.update(key for key, item in vars(infos).items() if _is_node_class(item))
    return frozenset(nodes)


def _in_relax(name: str) -> bool:
    if name in _OWN_RELAX or name in _relax.NAMES or name in _relax.COMPOSED:
        return True
    if name in FUNCTIONS or name in relax_nodes():
        return True
    if Op.is_registered(f"relax.{name}"):
        return True
    return any(item.startswith(f"relax.{name}.") for item in Op.list_op_names())


_imported: Final = functools.cache(importlib.import_module)


def _from(module: str) -> Callable[[str], Any]:
    return lambda name: getattr(_imported(module), name)


def _language(module: str, name: str, rest: str) -> object:
    """A function or a node of a package; if it has none of that name, of ``rest``."""
    value = getattr(_imported(module), name, None)
    if isinstance(value, FunctionType) or _is_node_class(value):
        return value
    return _from(rest)(name)


def _from_relax(name: str) -> object:
    """``relax.add``, or a name that only ``R`` has: ``relax.dataflow``, ``relax.nn``."""
    return _language("weft.relax", name, "weft.script.relax")


def _from_tir(name: str) -> object:
    return _language("weft.tir", name, "weft.script.tir")


def _table(title: str, values: dict[str, object]) -> Namespace:
    return Namespace(title, values.__contains__, values.__getitem__)


@functools.cache
def namespaces() -> dict[str, Namespace]:
    """The names of every text: T, R, I, and the package under both its names."""
    names = {
        "T": Namespace("T", _in_tir, _from("weft.script.tir")),
        "R": Namespace("R", _in_relax, _from("weft.script.relax")),
        "I": Namespace("I", _OWN_IR.__contains__, _from("weft.script.ir")),
    }
    relax = Namespace("relax", _in_relax, _from_relax)
    script = _table("script", {"tir": names["T"], "relax": names["R"], "ir": names["I"]})
    tir = Namespace("tir", tir_names().__contains__, _from_tir)
    ir = Namespace("ir", _PACKAGE_IR.__contains__, _from("weft.ir"))
    package = _table("weft", {"script": script, "tir": tir, "relax": relax, "ir": ir})
    return {**names, "relax": relax, "weft": package, "tvm": package}


def of_module(value: object) -> object:
    """The namespace for a module such as ``weft.script.tir``, which callers pass as ``T``."""
    for name, module in (("T", "tir"), ("R", "relax"), ("I", "ir")):
        if value is importlib.import_module(f"weft.script.{module}"):
            return namespaces()[name]
    return value
