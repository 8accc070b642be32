"""The late-bound slots: the only calls from a lower package to a higher one (design.md 2).

Each slot is filled exactly once, by its owner, at the owner's import; reading an empty one imports
the owner by name. A house test lists them.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

from weft.support.errors import InternalError


class Slot:
    """One late-bound reference: ``slot.get()`` is what the owner module filled in."""

    __slots__ = ("_value", "name", "owner")

    def __init__(self, name: str, owner: str) -> None:
        self.name = name
        self.owner = owner
        self._value: Any = None

    def fill(self, value: object) -> None:
        """Bind the slot; a second, different value is a bug."""
        if self._value is not None and self._value is not value:
            raise InternalError(f"slot {self.name} is already filled by {self.owner}")
        self._value = value

    def get(self) -> Any:
        """The value; the owner is imported first if need be."""
        if self._value is None:
            importlib.import_module(self.owner)
            if self._value is None:
                raise InternalError(f"importing {self.owner} did not fill the slot {self.name}")
        return self._value


text: Final = Slot("text", "weft.script.printer")
"""A module object with ``to_text(node, **config) -> str`` and friends: owner weft.script."""

operators: Final = Slot("operators", "weft.tir.op")
"""The namespace of operator functions that PrimExpr's Python operators call: owner weft.tir.op."""

relax_operators: Final = Slot("relax_operators", "weft.relax.op")
"""The second half of ``operators``: what a relax Expr's Python operators call: owner relax.op."""

backend_of: Final = Slot("backend_of", "weft.codegen.backend")
"""``backend_of(target)``, which knows the machine of a target: owner weft.codegen."""

plugin_kind: Final = Slot("plugin_kind", "weft.codegen.backend")
"""``plugin_kind(name)``: a kind of target that a plug-in brings, or None: owner weft.codegen."""

package_writer: Final = Slot("package_writer", "weft.codegen.backend")
"""``package_writer(triple)``: what writes a model as a folder, or None: owner weft.codegen."""

evaluate: Final = Slot("evaluate", "weft.driver.evaluate")
"""``evaluate(prim_func, arrays) -> arrays`` on compiled code: owner weft.driver (FoldConstant)."""

relax_build: Final = Slot("relax_build", "weft.driver.build")
"""``relax.build``, for ``nn.Module.jit``: owner weft.driver."""

prim_func_info: Final = Slot("prim_func_info", "weft.relax.ir.prim_func_info")
"""``prim_func_info(func)``, the struct info of a PrimFunc: owner weft.relax."""

reference: Final = Slot("reference", "weft.relax.reference.verify")
"""The class of the instrument behind ``PassContext(verify=True)``: owner
weft.relax.reference."""

legacy: Final = Slot("legacy", "weft.compat.adapt")
"""``adapt(what, args, kwargs) -> (args, kwargs) | None``: names of other releases: owner compat.

Called only after normal binding has failed, and followed by one retry."""

old_attributes: Final = Slot("old_attributes", "weft.compat.spellings")
"""``old_attributes(class) -> {name: adapter}``: what objects of a node class had in other releases,
and ``module:function``, which computes it: owner compat, of which only the table is imported."""

tell_tools: Final = Slot("tell_tools", "weft.runtime.native.debugging.tell")
"""``tell_tools(file, addresses, code, loading)``, which perf and gdb need of loaded code: owner
weft.runtime; imported under WEFT_PERF only."""

written_with_lines: Final = Slot("written_with_lines", "weft.backends.cpu.lines")
"""``written_with_lines(mod, target, checks=...)``: LLVM IR with lines of the printed functions:
owner weft.backends; imported under WEFT_PERF only, since it imports the printer."""

module_json: Final = Slot("module_json", "weft.tir.array_json")
"""``(write(module, numbers), read(text, arrays))``: an IRModule without the content of its arrays,
as a compiled model on disk has it: owner weft.tir.
"""

pass_names: Final = Slot("pass_names", "weft.driver.pass_names")
"""``pass_names() -> set``: the names of weft's own passes, for those that a PassContext is given:
owner weft.driver."""

picture: Final = Slot("picture", "weft.viz.stored")
"""``picture(model, args, kwargs)``, for ``CompiledModel.viz``: owner weft.viz."""

torch_fallback: Final = Slot("torch_fallback", "weft.relax.frontend.torch.fallback")
"""``call_operator(description, *arrays)``, which runs an operator in PyTorch: owner the frontend.

Its import fails where PyTorch is missing."""
