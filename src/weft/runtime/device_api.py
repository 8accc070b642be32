"""What the runtime asks of a device: memory, copies, and code that it can call.

Each backend has one object of the form of ``DeviceAPI`` for its type of device; that of CPUs is
``weft.backends.cpu.device``. Arrays and loaded code reach a device through it alone.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Final, Protocol

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.registry import PackedFunc
from weft.support.registration import refuse_second

CPU_TYPE: Final = 1
"""DLPack's number of CPUs."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on a device. They live as long as ``owner``, which frees them when it goes.

    ``address`` means something to the device alone: only memory of a CPU can be read through it.
    """

    device_type: int
    device_id: int
    address: int
    nbytes: int
    owner: object = None


class Program(Protocol):
    """Code that a device can run."""

    def function(self, spec: FunctionSpec) -> PackedFunc:
        """The function that ``spec`` describes, behind the checks of its arguments."""


class DeviceAPI(Protocol):
    """One type of device. Work on a device happens in order; ``sync`` waits for it."""

    def count(self) -> int:
        """How many devices of the type this machine has."""

    def alloc(self, device_id: int, nbytes: int, alignment: int) -> Memory:
        """Fresh uninitialised memory; IRValueError where there is not so much."""

    def copy(self, target: Memory, source: Memory, nbytes: int) -> None:
        """Copy bytes within a device, or between it and the CPU."""

    def load(self, code: bytes) -> Program:
        """Object code, made callable."""

    def sync(self, device_id: int) -> None:
        """Return when all work of a device has ended."""


_PLACES: Final = {CPU_TYPE: "weft.backends.cpu.device:HOST"}
"""Type of device -> weft's own object for it, ``module:object``."""
_APIS: Final[dict[int, DeviceAPI]] = {}
"""The objects in use."""


def register_device_api(device_type: int, api: DeviceAPI, *, override: bool = False) -> None:
    """Let ``api`` serve the devices of a type (DLPack's number).

    Raises:
        IRValueError: another one serves them, and ``override`` is not given.
    """
    is_taken = device_type in _PLACES or _APIS.get(device_type, api) is not api
    refuse_second("the interface of the device type", device_type, is_taken, override)
    _APIS[device_type] = api


def find_device_api(device_type: int) -> DeviceAPI | None:
    """What serves the devices of a type; None where nothing does."""
    api = _APIS.get(device_type)
    if api is None and device_type in _PLACES:
        module, _, name = _PLACES[device_type].partition(":")
        api = _APIS[device_type] = getattr(importlib.import_module(module), name)
    return api


def host_api() -> DeviceAPI:
    """The interface of this machine's CPU."""
    api = find_device_api(CPU_TYPE)
    assert api is not None
    return api
