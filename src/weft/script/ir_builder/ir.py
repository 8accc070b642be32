"""The frame of a module, and the functions that a module's class body may call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.global_info import DummyGlobalInfo, GlobalInfo, VDevice
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.script.ir_builder.base import IRBuilder, IRBuilderFrame
from weft.support.errors import IRValueError, wrong_type
from weft.target.target import Target


class IRModuleFrame(IRBuilderFrame):
    """A module being built."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: dict[GlobalVar, BaseFunc] = {}
        self.attrs: dict[str, object] = {}
        self.global_infos: dict[str, list[GlobalInfo]] = {}
        self.order: list[GlobalVar] = []
        self.declared: dict[str, GlobalVar] = {}

    def add_function(self, name: str, func: BaseFunc) -> None:
        """Add a function that a frame inside has built."""
        for var in self.functions:
            if var.name_hint == name:
                raise IRValueError(f"the module has two functions named {name!r}")
        var = self.declared.pop(name) if name in self.declared else GlobalVar(name)
        if var.struct_info is None:
            var.struct_info = func.struct_info
        self.functions[var] = func

    def declare(self, name: str, signature: BaseFunc) -> GlobalVar:
        """The variable of a function that is still to be defined."""
        if name in [var.name_hint for var in (*self.functions, *self.declared.values())]:
            raise IRValueError(f"I.decl_function: the module has a function named {name!r}")
        var = GlobalVar(name)
        var.struct_info = signature.struct_info
        self.declared[name] = var
        self.order.append(var)
        return var

    def _exit(self) -> None:
        assert self.builder is not None
        if self.declared:
            missing = ", ".join(self.declared)
            raise IRValueError(f"the module declares functions that nothing defines: {missing}")
        ordered = {var: self.functions[var] for var in self.order}
        functions = {**ordered, **self.functions}
        self.builder.finish(IRModule(functions, attrs=self.attrs, global_infos=self.global_infos))


def ir_module() -> IRModuleFrame:
    """Open a module; in a script ``@I.ir_module`` does."""
    return IRModuleFrame()


def find_module(what: str) -> IRModuleFrame:
    """The module being built; ``what`` needs it."""
    frame = IRBuilder.current().find(IRModuleFrame)
    if frame is None:
        raise IRValueError(f"{what} belongs inside an I.ir_module")
    return frame


def current_ir_module() -> IRModuleFrame:
    """The frame of the module under construction."""
    return find_module("I.current_ir_module")


def decl_function(func_name: str, func_signature: BaseFunc) -> GlobalVar:
    """Declare a function that is defined later, so that others can call it.

    Args:
        func_name: its name.
        func_signature: a function with its parameters and its result; the body does not count.

    Returns:
        The GlobalVar that calls name it by.
    """
    if not isinstance(func_signature, BaseFunc):
        raise wrong_type("I.decl_function: expected a function", func_signature)
    return find_module("I.decl_function").declare(func_name, func_signature)


def def_function(func_name: str, func: BaseFunc) -> None:
    """Define a function of the module, whether or not it was declared."""
    if not isinstance(func, BaseFunc):
        raise wrong_type("I.def_function: expected a function", func)
    find_module("I.def_function").add_function(func_name, func)


def module_get_attrs() -> dict[str, object]:
    """The attributes that the module has so far."""
    return dict(find_module("I.module_get_attrs").attrs)


def module_get_attr(attr_key: str) -> object:
    """An attribute that the module has so far, or None."""
    return find_module("I.module_get_attr").attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: object, allow_overwrite: bool = False) -> None:
    """Set an attribute of the module; the value None removes it."""
    frame = find_module("I.module_set_attr")
    if attr_key in frame.attrs and not allow_overwrite:
        raise IRValueError(f"I.module_set_attr: {attr_key!r} is already set")
    if attr_value is None:
        frame.attrs.pop(attr_key, None)
    else:
        frame.attrs[attr_key] = attr_value


def module_attrs(attrs: Mapping[str, object], allow_overwrite: bool = False) -> None:
    """Set attributes of the module: ``I.module_attrs({"device_num": 2})`` in the class's body.

    Args:
        attrs: values by name.
        allow_overwrite: an attribute that is set already gets the new value.
    """
    if not IRBuilder.is_in_scope():
        return
    frame = find_module("I.module_attrs")
    for key, value in attrs.items():
        if key in frame.attrs and not allow_overwrite:
            raise IRValueError(f"I.module_attrs: {key!r} is already set")
        frame.attrs[key] = value


def module_global_infos(global_infos: Mapping[str, Sequence[GlobalInfo]]) -> None:
    """Set the module's lists of global infos: ``{"vdevice": [I.vdevice("llvm")]}``."""
    if not IRBuilder.is_in_scope():
        return
    frame = find_module("I.module_global_infos")
    for name, infos in global_infos.items():
        frame.global_infos[str(name)] = list(infos)


def function_names(names: Mapping[str, str]) -> dict[str, str]:
    """State the real names of functions: ``{"a_b": "a.b"}`` says that ``def a_b`` defines
    ``a.b``.
    """
    for printed, name in names.items():
        if not (isinstance(name, str) and name and str(printed).isidentifier()):
            raise IRValueError(
                "I.function_names: expected identifiers of functions below and their names, got "
                f"{printed!r}: {name!r}"
            )
    return {str(printed): name for printed, name in names.items()}


def vdevice(target: object = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """Describe a device that values of the module live on: ``I.vdevice("llvm", 0)``.

    Args:
        target: the target, or its text or dict.
        vdevice_id: the number of the device among those of its kind.
        memory_scope: the memory of the device.
    """
    if isinstance(target, str | dict):
        target = Target(target)
    return VDevice(target, int(vdevice_id), memory_scope)


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice:
    """The virtual device of the module with that number among those of a kind of target."""
    listed = find_module("I.lookup_vdevice").global_infos.get("vdevice", [])
    if not target_kind:
        devices = listed
    else:
        devices = [
            item
            for item in listed
            if isinstance(item, VDevice) and str(item.target.kind.name) == target_kind
        ]
    index = max(device_index, 0)
    if index >= len(devices):
        what = f"of target {target_kind!r} " if target_kind else ""
        raise IRValueError(
            f"I.lookup_vdevice: expected an index below {len(devices)}, the number of virtual "
            f"devices {what}in the module, got {device_index}"
        )
    return expect(devices[index], VDevice)


def dummy_global_info() -> DummyGlobalInfo:
    """A global info without content, for tests of what holds such."""
    return DummyGlobalInfo()
