"""The module that a BlockBuilder fills: unique names, and equal functions stored once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from weft.ir.expr import GlobalVar, IntImm
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal, structural_hash
from weft.relax.expr import Function
from weft.relax.ir.prim_func_info import prim_func_info
from weft.relax.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo
from weft.support.errors import wrong_type
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_]")

Outline = tuple[object, ...]
"""Properties that equal functions share: class, counts of attributes and bindings, parameters."""


class NameSupply:
    """Unique names: ``lv``, ``lv1``, ``lv2`` ... for one hint."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """The hint, or the hint and the first free number."""
        if not isinstance(hint, str):
            raise wrong_type("expected a name", hint)
        hint = _UNSAFE.sub("_", hint) or "v"
        if hint not in self.counts:
            self.counts[hint] = 0
            return hint
        while True:
            self.counts[hint] += 1
            name = f"{hint}{self.counts[hint]}"
            if name not in self.counts:
                self.counts[name] = 0
                return name


@dataclass
class _Alike:
    """Functions with one outline: those that no lookup came to yet, the others by their hash."""

    waiting: list[tuple[GlobalVar, BaseFunc]] = field(default_factory=list)
    hashed: dict[int, list[GlobalVar]] = field(default_factory=dict)


class FunctionIndex:
    """Finds functions by structure.

    Hashing walks a whole function, so it waits until a function with the same outline is looked up.
    """

    def __init__(self) -> None:
        self.alike: dict[Outline, _Alike] = {}

    def add(self, gvar: GlobalVar, func: BaseFunc) -> None:
        """Add a function. An earlier function of the same GlobalVar may stay in the index."""
        self.alike.setdefault(_outline(func), _Alike()).waiting.append((gvar, func))

    def candidates(self, func: BaseFunc) -> list[GlobalVar]:
        """The GlobalVars that name, or have named, a function of the same hash."""
        alike = self.alike.get(_outline(func))
        if alike is None:
            return []
        for gvar, other in alike.waiting:
            alike.hashed.setdefault(structural_hash(other), []).append(gvar)
        alike.waiting.clear()
        return alike.hashed.get(structural_hash(func), [])


def _outline(func: BaseFunc) -> Outline:
    """Properties that equal functions share and that take no walk to compute."""
    outline: Outline = (type(func), len(getattr(func, "params", ())), len(func.attrs))
    if isinstance(func, Function):
        return (*outline, *[len(block.bindings) for block in func.body.blocks])
    if isinstance(func, PrimFunc):
        return (*outline, *[_type(func.buffer_map.get(param, param)) for param in func.params])
    return outline


def _type(param: Buffer | Var) -> tuple[object, ...]:
    """The type of a parameter, of a buffer with its constant extents."""
    shape = param.shape if isinstance(param, Buffer) else ()
    return (param.dtype, *[item.value if isinstance(item, IntImm) else None for item in shape])


class ModuleBuilder:
    """A module that grows: names are unique, and structurally equal functions are stored once."""

    def __init__(self, mod: IRModule | None = None) -> None:
        if mod is not None and not isinstance(mod, IRModule):
            raise wrong_type("BlockBuilder: expected an IRModule", mod)
        self._mod = IRModule() if mod is None else mod.clone()
        self._names = NameSupply()
        self._functions: FunctionIndex | None = None

    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function to the module and return its GlobalVar.

        Args:
            func: the function. If the module has a structurally equal one already, the GlobalVar
                of that one is returned.
            func_name: its name; a number is added where the name is taken.
        """
        index = self._function_index()
        for gvar in index.candidates(func):
            if gvar in self._mod and structural_equal(self._mod[gvar], func):
                return gvar
        name = self._names.fresh(func_name)
        while name in self._mod:
            name = self._names.fresh(func_name)
        if name != func_name and func.attrs.get("global_symbol") == func_name:
            func = func.with_attr("global_symbol", name)
        gvar = GlobalVar(name)
        gvar.struct_info = function_info(func)
        self._mod[gvar] = func
        index.add(gvar, func)
        return gvar

    def _function_index(self) -> FunctionIndex:
        if self._functions is None:
            self._functions = FunctionIndex()
            for gvar, func in self._mod.functions.items():
                self._functions.add(gvar, func)
        return self._functions

    def update_func(self, gv: GlobalVar, updated_func: BaseFunc) -> None:
        """Replace the function that a GlobalVar of the module names."""
        if not isinstance(gv, GlobalVar):
            raise wrong_type("update_func: expected a GlobalVar", gv)
        index = self._function_index()
        self._mod[gv] = updated_func
        index.add(self._mod.get_global_var(gv.name_hint), updated_func)
        info = function_info(updated_func)
        if gv.struct_info is None:
            gv.struct_info = info

    def global_info(self, gvar: GlobalVar) -> StructInfo | None:
        """The struct info of a function of the module; None if it is not there yet."""
        return function_info(self._mod[gvar]) if gvar in self._mod else None

    def function_of(self, gvar: GlobalVar) -> BaseFunc | None:
        """The function of the module that a GlobalVar names, or None."""
        return self._mod[gvar] if gvar in self._mod else None

    def get(self) -> IRModule:
        """A copy of the module as it is now."""
        return self._mod.clone()

    def finalize(self) -> IRModule:
        """A copy of the finished module."""
        return self.get()

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that the builder has not used yet: the prefix, perhaps with a number."""
        return self._names.fresh(name_prefix)


def function_info(func: object) -> StructInfo:
    """The struct info of a function: its own, or from a PrimFunc's parameters, or opaque."""
    info = getattr(func, "struct_info", None)
    if isinstance(info, StructInfo):
        return info
    if isinstance(func, PrimFunc):
        return prim_func_info(func)
    return FuncStructInfo.opaque_func(ret=ObjectStructInfo())
