"""The code of parallel loops (parallel.ll), of teams (team.ll) and of their workers (worker.ll)."""

from __future__ import annotations

from typing import Final

from weft.backends.cpu.isa import architecture_of, host_system
from weft.runtime.native.ir_files import ir_file

_FILES: Final = ("team.ll", "worker.ll", "parallel.ll")


def parallel_ir(triple: str = "") -> str:
    """The module text for the processors of a triple ("": for this process's).

    The instruction with which a thread waits differs between processors: a function that has it is
    added to the text of the files.
    """
    pause = architecture_of(triple or host_system()[0]).pause
    waits = f"define internal void @pause() alwaysinline {{ {pause.call} ret void }}\n"
    files = [ir_file(f"threads/{name}") for name in _FILES]
    return "\n".join([*files, pause.declaration, waits])
