"""The frame of a module, and what a module's class body may say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.global_info import DummyGlobalInfo, VDevice
from weft.ir.module import IRModule
from weft.script.ir_builder.base import IRBuilder, IRBuilderFrame
from weft.support.errors import IRValueError
from weft.target.target import Target


class IRModuleFrame(IRBuilderFrame):
    """A module being built."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[GlobalVar, BaseFunc] = {}
        self.attrs: dict[str, Any] = {}
        self.global_infos: dict[str, list[Any]] = {}
        self.order: list[GlobalVar] = []

    def add_function(self, name: str, func: BaseFunc) -> None:
        """Add a function that a frame inside has made."""
        for var in self.functions:
            if var.name_hint == name:
                raise IRValueError(f"the module has two functions named {name!r}")
        self.functions[GlobalVar(name)] = func

    def _exit(self) -> None:
        assert self.builder is not None
        ordered = {var: self.functions[var] for var in self.order}
        self.builder.result = IRModule(
            {**ordered, **self.functions}, attrs=self.attrs, global_infos=self.global_infos
        )


def ir_module() -> IRModuleFrame:
    """A frame that makes an IRModule."""
    return IRModuleFrame()


def find_module(what: str) -> IRModuleFrame:
    """The module being built; ``what`` needs it."""
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise IRValueError(f"{what} belongs inside an I.ir_module")
    return frame


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Set attributes of the module; nothing where Python itself runs the class's body."""
    if not IRBuilder.is_in_scope():
        return
    frame = find_module("I.module_attrs")
    for key, value in attrs.items():
        if key in frame.attrs and not allow_overwrite:
            raise IRValueError(f"I.module_attrs: {key!r} is already set")
        frame.attrs[key] = value


def module_global_infos(global_infos: Mapping[str, Sequence[Any]]) -> None:
    """Set the module's lists of global infos; nothing where Python runs the class's body."""
    if not IRBuilder.is_in_scope():
        return
    frame = find_module("I.module_global_infos")
    for name, infos in global_infos.items():
        frame.global_infos[str(name)] = list(infos)


def function_names(names: Mapping[str, str]) -> dict[str, str]:
    """The names of functions that no definition can have: ``{"a_b": "a.b"}`` for ``def a_b``."""
    for printed, name in names.items():
        if not (isinstance(name, str) and name and str(printed).isidentifier()):
            raise IRValueError(
                "I.function_names: expected identifiers of functions below and their names, got "
                f"{printed!r}: {name!r}"
            )
    return {str(printed): name for printed, name in names.items()}


def vdevice(target: Any = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """A virtual device of the module."""
    if isinstance(target, str | dict):
        target = Target(target)
    return VDevice(target, int(vdevice_id), memory_scope)


def dummy_global_info() -> DummyGlobalInfo:
    """A global info without content."""
    return DummyGlobalInfo()
