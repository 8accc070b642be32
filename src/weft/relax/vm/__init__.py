"""From Relax functions to an Executable: bytecode for all, native host code where possible.

The classes that run it live in ``weft.runtime.vm.virtual_machine``; a compiled model needs nothing
of this room.
"""

from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.facade import module_getattr

VMExecutable = Executable

__all__ = ["Executable", "VMExecutable", "VirtualMachine"]

__getattr__, __dir__ = module_getattr(
    __name__, {"lower_functions": "weft.relax.vm.lower"}, ("bytecode", "host", "lower")
)
