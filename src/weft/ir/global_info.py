"""Global infos: objects of a module that its functions refer to, such as virtual devices."""

from __future__ import annotations

from typing import Any

from weft.ir.node import Node, field, node, with_slots


@with_slots
class GlobalInfo(Node):
    """The base of global infos (``IRModule.global_infos``: a list of them by name)."""


@node
class DummyGlobalInfo(GlobalInfo):
    """A global info without content."""


@node
class VDevice(GlobalInfo):
    """A virtual device: a target, its number, and the memory that tensors live in."""

    target: Any = field(default=None, visit=False, stored="Target | str | None")
    vdevice_id: int = 0
    memory_scope: str = "global"
