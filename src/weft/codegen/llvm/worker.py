"""From LLVM IR text to object code: all that weft asks of LLVM when it compiles.

Started as a program, this file is a compile worker: a process that translates one text after the
other, until its input ends or nothing has come for a while. It imports nothing of weft, so that it
is ready soon. ``worker_process.py`` is the other side; why there are workers:
docs/design/0014-compile-workers.md.

A request is ``REQUEST`` (the lengths of what follows), a job in JSON, a text. An answer is
``ANSWER`` (its kind, the KiB of memory that the worker takes, the length of what follows) and that
many bytes. The first answer, to no request, says that the worker is ready.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import select
import struct
import sys
import threading
from types import ModuleType
from typing import Final, NamedTuple, Protocol

REQUEST: Final = struct.Struct("<QQ")
ANSWER: Final = struct.Struct("<BQQ")
READY, DONE, REFUSED, NO_MEMORY = range(4)
ALL, NO_SLP, FEW = "all", "no slp", "few"
"""Which of LLVM's passes run: all of the level of optimisation; all but the search for vectors in
straight code (SLP); or those of level 1 and unrolling, which suffice where loops have a schedule.
"""
_WATCHER_STACK: Final = 256 << 10


class Refusal(Exception):
    """LLVM cannot read a text; its message says why."""


class Module(Protocol):
    """A module in LLVM's memory (``llvmlite.binding.ModuleRef``)."""

    triple: str
    data_layout: str


class TargetMachine(Protocol):
    """LLVM's code generator for a processor (``llvmlite.binding.TargetMachine``)."""

    def __hash__(self) -> int: ...

    @property
    def triple(self) -> str:
        """The system that the code is for."""

    @property
    def target_data(self) -> object:
        """How types lie in its memory; ``str`` gives the text of it."""

    def emit_object(self, module: Module) -> bytes:
        """The object code of a module."""

    def emit_assembly(self, module: Module) -> str:
        """The assembly of a module."""


class PassManager(Protocol):
    """A pipeline of LLVM's passes (``llvmlite.binding.ModulePassManager``)."""

    def run(self, module: Module, builder: PassBuilder) -> None:
        """Rewrite a module."""

    def detach(self) -> None:
        """Forget LLVM's object, which was freed."""

    def close(self) -> None:
        """Free LLVM's object, unless it is forgotten."""


class PassBuilder(Protocol):
    """What makes pipelines of LLVM's passes (``llvmlite.binding.PassBuilder``)."""

    def getModulePassManager(self) -> PassManager:  # noqa: N802 - llvmlite's name
        """A new pipeline."""


class Job(NamedTuple):
    """What LLVM is to make of a text: for which machine, how well optimised, in which form."""

    triple: str
    cpu: str
    features: str
    opt_level: int
    passes: str
    """Which of LLVM's passes run: ``ALL``, ``NO_SLP`` or ``FEW``."""
    position_independent: bool
    """Whether the code works wherever it is loaded to."""
    wanted: str
    """``object``: object code; ``ir``: the optimised IR; ``assembly``: the target's text."""
    in_order: bool
    """Whether instructions stay in the order of the text, as far as LLVM's selection keeps it."""


def translate(llvm: ModuleType, text: str, job: Job) -> bytes:
    """What ``job`` wants of LLVM IR; ``llvm`` is ``llvmlite.binding``. Raises Refusal.

    The text is read into a context of its own, with which LLVM frees its types and constants.
    """
    machine = target_machine(llvm, *job[:4], job.position_independent)
    with llvm.create_context() as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise Refusal(str(error).strip()) from error
        with module:
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            _optimize(llvm, module, _pass_builder(llvm, machine, job.opt_level, job.passes))
            # An option of the whole process; LLVM has no attribute of functions for it.
            llvm.set_option("weft", f"-enable-misched={int(not job.in_order)}")
            if job.wanted == "object":
                return machine.emit_object(module)
            printed = str(module) if job.wanted == "ir" else machine.emit_assembly(module)
            return printed.encode()


def _optimize(llvm: ModuleType, module: Module, builder: PassBuilder) -> None:
    """Run LLVM's passes, by a new pass manager: its inliner loses its passes in the first run."""
    manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        dispose = getattr(type(manager), "_dispose", None)
        if dispose is llvm.ffi.ObjectRef._dispose:  # llvmlite 0.50 does not free it by itself
            llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(manager)
            manager.detach()
        manager.close()


@functools.lru_cache(maxsize=16)
def _pass_builder(
    llvm: ModuleType, machine: TargetMachine, opt_level: int, passes: str
) -> PassBuilder:
    level = min(opt_level, 1) if passes == FEW else opt_level
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.loop_interleaving = level > 1
    tuning.loop_unrolling = opt_level > 1
    tuning.slp_vectorization = level > 1 and passes != NO_SLP
    builder: PassBuilder = llvm.create_pass_builder(machine, tuning)
    return builder


@functools.lru_cache(maxsize=8)
def target_machine(
    llvm: ModuleType,
    triple: str,
    cpu: str,
    features: str,
    opt_level: int,
    position_independent: bool = True,
) -> TargetMachine:
    """LLVM's target machine; a RuntimeError of LLVM where it was built without that target."""
    if triple and triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    reloc = "pic" if position_independent else "static"
    machine: TargetMachine = target.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, reloc=reloc, codemodel="default"
    )
    return machine


def read_exactly(source: int, size: int) -> bytes:
    """The next ``size`` bytes of a file descriptor. Raises EOFError where it ends before."""
    parts = bytearray()
    while len(parts) < size:
        part = os.read(source, min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def write_all(sink: int, *parts: bytes) -> None:
    """Write all parts to a file descriptor, in one call where it takes so much at once."""
    rest = memoryview(b"".join(parts))
    while rest:
        rest = rest[os.write(sink, rest) :]


def main() -> None:
    """Answer requests from standard input until it ends.

    Arguments of the program: the folder that llvmlite is in, and after how many seconds without a
    request it ends.
    """
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what LLVM prints goes to standard error: standard output is for answers
    sys.path.append(sys.argv[1])
    idle_milliseconds = float(sys.argv[2]) * 1000
    import llvmlite.binding as llvm  # noqa: PLC0415 - from the folder that was given

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    threading.stack_size(_WATCHER_STACK)
    threading.Thread(target=end_with_the_parent, args=(source,), daemon=True).start()
    requests = _poll(source, select.POLLIN)
    kind, payload = READY, b""
    while True:
        write_all(sink, ANSWER.pack(kind, resident(), len(payload)), payload)
        if not requests.poll(idle_milliseconds):
            os._exit(0)
        sizes = REQUEST.unpack(read_exactly(source, REQUEST.size))
        job, text = [read_exactly(source, size) for size in sizes]
        kind, payload = _answer(llvm, Job(*json.loads(job)), text)


def resident() -> int:
    """How many KiB of memory this process takes now; 0 where the system does not tell.

    ``getrusage`` does not help: its peak begins with that of the process that started this one.
    """
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 10
    except OSError:
        return 0


def _poll(source: int, event: int) -> select.poll:
    poll = select.poll()
    poll.register(source, event)
    return poll


def end_with_the_parent(source: int) -> None:
    """End the process as soon as the other end of its input is closed, even while LLVM works.

    A poll for no event waits for exactly that: POLLHUP is reported unasked.
    """
    _poll(source, 0).poll()
    os._exit(0)


def _answer(llvm: ModuleType, job: Job, text: bytes) -> tuple[int, bytes]:
    """The kind and the bytes of the answer to a request."""
    try:
        return DONE, translate(llvm, text.decode(), job)
    except Refusal as error:
        return REFUSED, str(error).encode()
    except MemoryError:
        return NO_MEMORY, b""


if __name__ == "__main__":
    main()
