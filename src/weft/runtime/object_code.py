"""ObjectCode: compiled code with all that a process needs to load it, and the check of the CPU.

``features`` are LLVM's names of the instruction sets that the code may use. They are compared with
the processor's before the code is loaded, since one missing instruction would end the process.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.runtime.abi import THREADED
from weft.runtime.builtins_ir import BUILTINS, BUILTINS_IR
from weft.runtime.elf import read_object
from weft.runtime.native import NativeFunction, NativeLibrary
from weft.runtime.parallel_ir import parallel_ir
from weft.runtime.parts import digest_of, part_object
from weft.runtime.processor import Processor, surely_has, this_processor
from weft.runtime.spec import FunctionSpec
from weft.runtime.tensor_call_ir import tensor_call_ir
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

    def load(self) -> dict[str, NativeFunction]:
        """The functions by name; ArtifactTargetError where this processor cannot run them."""
        check_processor(self)
        library = NativeLibrary(self.code)
        return {spec.name: library.function(spec) for spec in self.specs}


    def parts(self) -> dict[str, bytes]:
        """Object code of the runtime's own parts that this code calls, and of the one that calls
        it with a framework's tensors, by the digest of their text.

        None of them where the code is for another kind of processor than this machine's.
        """
        file = read_object(self.code)
        if file is None:
            return {}
        undefined = file.symbol_names()[1]
        texts = [parallel_ir()] if undefined & THREADED else []
        if undefined & BUILTINS:
            texts.append(BUILTINS_IR)
        texts.append(tensor_call_ir())
        found = {digest_of(text): part_object(text) for text in texts}
        made = [read_object(part) for part in found.values()]
        same = all(part is not None and part.machine == file.machine for part in made)
        return found if same else {}


def check_processor(code: ObjectCode, here: Processor | None = None) -> None:
    """Raise ArtifactTargetError unless this machine has all that the code may use.

    ``here`` is what to compare with instead of this machine: triple, processor, features.
    """
    if here is None and surely_has(code.triple, code.features):
        return
    triple, cpu, found = here or this_processor()
    if system_of(code.triple) != system_of(triple):
        raise ArtifactTargetError(
            f"this code is for {code.triple}, and this process runs on {triple}; compile the model "
            "here, or for a target with this -mtriple"
        )
    missing = [name for name in code.features if not found.get(name)]
    if missing:
        shown = ", ".join(missing[:6]) + (f" and {len(missing) - 6} more" if missing[6:] else "")
        raise ArtifactTargetError(
            f"this code was compiled for the processor {code.cpu or 'generic'} and needs {shown}, "
            f"which this one ({cpu}) lacks; compile the model here, or with "
            'target="llvm -mcpu=x86-64-v3" for every x86-64 processor with AVX2'
        )


def system_of(triple: str) -> tuple[str, str]:
    """Architecture and operating system of a triple: what decides whether object code loads."""
    parts = triple.split("-")
    system = parts[2] if len(parts) > 2 else ""
    return parts[0], system
