"""ObjectCode: compiled code with all that a process needs to load it, and the check of the CPU.

``features`` are LLVM's names of the instruction sets that the code may use. They are compared with
the processor's before the code is loaded, since one missing instruction would end the process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from weft.backends.cpu.isa import architecture_of, host_system, system_of
from weft.runtime.call.abi import THREADED
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.call.tensor_call_ir import tensor_call_ir
from weft.runtime.device_api import host_api
from weft.runtime.native.builtins_ir import BUILTINS, builtins_ir
from weft.runtime.native.elf import read_object
from weft.runtime.native.foreign import CompiledFunction, ForeignFunction
from weft.runtime.native.native_library import NativeFunction
from weft.runtime.native.parts import digest_of, part_object
from weft.runtime.native.processor import Processor, surely_has, this_processor
from weft.runtime.threads.parallel_ir import parallel_ir
from weft.support.errors import ArtifactTargetError


@dataclass(frozen=True)
class ObjectCode:
    """A relocatable object, its functions, and what they run on.

    ``triple`` is LLVM's name of the system, ``cpu`` of the processor that the code was made for.
    """

    code: bytes
    specs: tuple[FunctionSpec, ...]
    triple: str
    cpu: str
    features: tuple[str, ...] = ()

    def load(self) -> dict[str, CompiledFunction]:
        """The functions by name.

        Code that this processor cannot run stays out of memory: its functions can be looked at and
        exported, and a call of one is an ArtifactTargetError.
        """
        obstacle = obstacle_of(self)
        if obstacle:
            advice = architecture_of(self.triple).runs_elsewhere
            return {spec.name: ForeignFunction(spec, obstacle, advice) for spec in self.specs}
        program = host_api().load(self.code)
        return {spec.name: cast(NativeFunction, program.function(spec)) for spec in self.specs}

    def parts(self) -> dict[str, bytes]:
        """Object code of the runtime's own parts that this code calls, and of the one that calls
        it with a framework's tensors, by the digest of their text and system.

        The last of them is for this process's Python, and so for its system only.
        """
        file = read_object(self.code)
        if file is None:
            return {}
        undefined = file.symbol_names()[1]
        texts = [parallel_ir(self.triple)] if undefined & THREADED else []
        if undefined & BUILTINS:
            texts.append(builtins_ir())
        if system_of(self.triple) == host_system():
            texts.append(tensor_call_ir())
        return {digest_of(text, self.triple): part_object(text, self.triple) for text in texts}


def check_processor(code: ObjectCode, here: Processor | None = None) -> None:
    """Raise ArtifactTargetError unless this machine has all that the code may use.

    ``here`` is what to compare with instead of this machine: triple, processor, features.
    """
    obstacle = obstacle_of(code, here)
    if not obstacle:
        return
    system = host_system() if here is None else system_of(here[0])
    portable = architecture_of(code.triple).portable
    other = "for a target with this -mtriple"
    if system == system_of(code.triple):
        other = f"with target={portable}" if portable else "for this processor"
    raise ArtifactTargetError(f"{obstacle}; compile the model here, or {other}")


def obstacle_of(code: ObjectCode, here: Processor | None = None) -> str:
    """Why this machine cannot run the code; nothing if it can."""
    if here is None and surely_has(code.triple, code.features):
        return ""
    triple, cpu, offered = here or this_processor()
    if system_of(code.triple) != system_of(triple):
        return f"this code is for {code.triple}, and this process runs on {triple}"
    missing = [name for name in code.features if not offered.get(name)]
    if not missing:
        return ""
    shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if missing[6:] else "")
    return (
        f"this code was compiled for the processor {code.cpu or 'generic'} and needs {shown}, "
        f"which this one ({cpu}) lacks"
    )
