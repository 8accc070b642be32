"""The one place where the runtime touches llvmlite: object code from IR, and from other formats.

llvmlite is imported at the first call, so ``import weft.runtime`` stays light, and a process that
loads compiled models never imports it where weft has a loader (weft.runtime.native.loader).
"""

from __future__ import annotations

import functools
from typing import Any

from weft.runtime.native.externals import BOUND
from weft.support.errors import CodegenError
from weft.support.llvm_binding import binding


@functools.cache
def _target(triple: str = "") -> Any:
    llvm = binding()
    if not triple:
        return llvm.Target.from_default_triple()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple)


class Engine:
    """LLVM's loader, with one relocatable object in it; every name must be bound before.

    An undefined name would end the process inside LLVM.
    """

    __slots__ = ("_engine",)

    def __init__(self, code: bytes) -> None:
        llvm = binding()
        for name, address in BOUND.items():
            llvm.add_symbol(name, address)
        machine = _target().create_target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        try:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
            self._engine.finalize_object()
        except RuntimeError as error:
            raise CodegenError(f"expected object code for this machine, got: {error}") from error

    def address(self, name: str) -> int:
        """The address of a function or variable; 0 if there is none of that name."""
        function: int = self._engine.get_function_address(name)
        return function or int(self._engine.get_global_value_address(name))


def object_from_ir(text: str, triple: str = "") -> bytes:
    """Position-independent object code from LLVM IR, for every processor of a system (the runtime's
    own parts, tests).

    ``triple`` names the system ("": this one). Raises CodegenError where LLVM does not know it.
    """
    try:
        target = _target(triple)
    except RuntimeError as error:
        raise CodegenError(
            f"this LLVM has no target for the triple {triple!r}: {str(error).strip()}"
        ) from error
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
    module = binding().parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    code: bytes = machine.emit_object(module)
    return code
