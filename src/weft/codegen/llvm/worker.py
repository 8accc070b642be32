"""LLVM IR text in, object code out: all that weft asks of LLVM when it compiles.

Run as a program, by its path, it is a compile worker: a process that translates one text after the
other until its input ends, or until nothing came for a while. So it imports nothing of weft, and
is ready soon. ``worker_process.py`` is the other side; why: docs/design/0014-compile-workers.md.

A request is ``REQUEST`` (two lengths), a job in JSON, a text. An answer is ``ANSWER`` (a kind, the
memory it takes in KiB, a length) and that many bytes. The first answer says that it is ready.
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
from typing import Any, Final, NamedTuple

REQUEST: Final = struct.Struct("<QQ")
ANSWER: Final = struct.Struct("<BQQ")
READY, DONE, REFUSED, NO_MEMORY = range(4)
_WATCHER_STACK: Final = 256 << 10


class Refusal(Exception):
    """LLVM does not take a text; its message says why."""


class Job(NamedTuple):
    """What LLVM is to do with a text: for which machine, how, and what is wanted of it."""

    triple: str
    cpu: str
    features: str
    opt_level: int
    slp: bool
    """Whether scalar operations may become vectors."""
    wanted: str
    """``object``: object code; ``ir``: the optimised IR; ``assembly``: the target's text."""


def translate(llvm: Any, text: str, job: Job) -> bytes:
    """What ``job`` wants of LLVM IR; ``llvm`` is ``llvmlite.binding``. Raises Refusal.

    Nothing stays behind: types and constants live as long as their context does.
    """
    machine = target_machine(llvm, *job[:4])
    with llvm.create_context() as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as error:
            raise Refusal(str(error).strip()) from error
        with module:
            module.triple = machine.triple
            module.data_layout = str(machine.target_data)
            _optimize(llvm, module, _pass_builder(llvm, machine, job.opt_level, job.slp))
            if job.wanted == "object":
                code: bytes = machine.emit_object(module)
                return code
            printed = str(module) if job.wanted == "ir" else machine.emit_assembly(module)
            return str(printed).encode()


def _optimize(llvm: Any, module: Any, builder: Any) -> None:
    """Run LLVM's passes; a pass manager can run only once, as its inliner gives its passes away."""
    manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        if type(manager)._dispose is llvm.ffi.ObjectRef._dispose:  # llvmlite 0.50 has forgotten it
            llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(manager)
            manager.detach()
        manager.close()


@functools.lru_cache(maxsize=16)
def _pass_builder(llvm: Any, machine: Any, opt_level: int, slp: bool) -> Any:
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt_level)
    tuning.loop_vectorization = tuning.loop_interleaving = tuning.loop_unrolling = opt_level > 1
    tuning.slp_vectorization = opt_level > 1 and slp
    return llvm.create_pass_builder(machine, tuning)


@functools.lru_cache(maxsize=8)
def target_machine(llvm: Any, triple: str, cpu: str, features: str, opt_level: int) -> Any:
    """LLVM's target machine; a RuntimeError of LLVM where it was built without that target."""
    if triple and triple.split("-")[0] != llvm.get_process_triple().split("-")[0]:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    return target.create_target_machine(
        cpu=cpu, features=features, opt=opt_level, reloc="pic", codemodel="default"
    )


def read_exactly(source: int, size: int) -> bytes:
    """``size`` bytes of a file descriptor. Raises EOFError where it ends before."""
    parts = bytearray()
    while len(parts) < size:
        part = os.read(source, min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def write_all(sink: int, *parts: bytes) -> None:
    """Write everything to a file descriptor, at once if it takes so much."""
    rest = memoryview(b"".join(parts))
    while rest:
        rest = rest[os.write(sink, rest) :]


def main() -> None:
    """Answer requests from standard input until it ends.

    Arguments: the folder that llvmlite is in; after how many seconds without a request it ends.
    """
    source, sink = os.dup(0), os.dup(1)
    os.dup2(2, 1)  # what LLVM prints is no answer
    sys.path.append(sys.argv[1])
    idle_milliseconds = float(sys.argv[2]) * 1000
    import llvmlite.binding as llvm  # noqa: PLC0415 - from the folder that was given

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    threading.stack_size(_WATCHER_STACK)
    threading.Thread(target=_end_with_the_parent, args=(source,), daemon=True).start()
    requests = _poll(source, select.POLLIN)
    kind, payload = READY, b""
    while True:
        write_all(sink, ANSWER.pack(kind, _resident(), len(payload)), payload)
        if not requests.poll(idle_milliseconds):
            os._exit(0)
        sizes = REQUEST.unpack(read_exactly(source, REQUEST.size))
        job, text = [read_exactly(source, size) for size in sizes]
        kind, payload = _answer(llvm, Job(*json.loads(job)), text)


def _resident() -> int:
    """KiB of memory that this process takes; 0 where the system does not tell.

    The most memory that ``getrusage`` knows of is that of the process which started this one.
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


def _end_with_the_parent(source: int) -> None:
    """End the process, even in LLVM, when nobody can ask any more: POLLHUP needs no asking for."""
    _poll(source, 0).poll()
    os._exit(0)


def _answer(llvm: Any, job: Job, text: bytes) -> tuple[int, bytes]:
    try:
        return DONE, translate(llvm, text.decode(), job)
    except Refusal as error:
        return REFUSED, str(error).encode()
    except MemoryError:
        return NO_MEMORY, b""


if __name__ == "__main__":
    main()
