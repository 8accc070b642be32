"""From LLVM IR text to object code.

LLVM's passes are those of O3 with its search for vectors in loops and in straight code. Where weft
has scheduled the loops, those of O1 and unrolling suffice.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from weft.backends.cpu.isa import architecture_of
from weft.codegen.llvm.emit import IN_ORDER, SCHEDULED_BY_US
from weft.codegen.llvm.instructions import check_instructions
from weft.codegen.llvm.worker import (
    ALL,
    FEW,
    NO_SLP,
    Job,
    Refusal,
    TargetMachine,
    target_machine,
    translate,
)
from weft.codegen.llvm.worker_pool import POOL, Batch, NotTranslatedError
from weft.codegen.llvm.worker_process import WorkerEndedError
from weft.runtime.call.spec import FunctionSpec
from weft.support.errors import CodegenError, InternalError, TVMError
from weft.support.lazy_property import lazy_property
from weft.support.llvm_binding import binding
from weft.support.progress import phase
from weft.target.host import LLVMOptions

SLP_MISTAKES: Final = re.compile(r"uitofp (i|<\d+ x i)(16|32|64)")
"""Conversions that LLVM 22's SLP vectoriser gets wrong: it narrows the operand, then extends its
sign, so that uint64(-1) becomes 2**32 - 1 (tests/codegen/llvm/test_llvm_bugs.py). It is turned off
for a text that has one."""

OUT_OF_MEMORY: Final = (
    "give it more memory (ulimit -v, the container's limit), or compile smaller functions"
)
LLVM_FAILED: Final = (
    "this is a fault of LLVM or of weft: please report it with what get_source('ll') gives"
)
_DEFINED: Final = re.compile(r'^define (?!internal|private|linkonce).*?@"?([^"(]+)', re.MULTILINE)


@dataclass(frozen=True)
class CompiledObject:
    """Object code with the functions in it; its text, as LLVM IR or assembly, on demand."""

    finish: Callable[[], bytes]
    """Gives the object code; waits for LLVM where it is still at work (``compiled_together``)."""
    specs: tuple[FunctionSpec, ...]
    options: LLVMOptions
    source: Callable[[], str]
    """Gives the LLVM IR as emitted."""

    @lazy_property
    def object_code(self) -> bytes:
        """A relocatable object file."""
        return self.finish()

    @lazy_property
    def llvm_ir(self) -> str:
        """The LLVM IR as emitted."""
        return self.source()

    def optimized_ir(self) -> str:
        """The LLVM IR after optimisation."""
        return optimized(self.llvm_ir, self.options)

    def assembly(self) -> str:
        """The target's assembly text."""
        return translated(self.llvm_ir, self.options, "assembly").decode()

    def get_source(self, fmt: str = "ll") -> str:
        """``ll``: LLVM IR as emitted; ``opt``: optimised; ``s`` or ``asm``: assembly."""
        readers: dict[str, Callable[[], str]] = {
            "ll": lambda: self.llvm_ir,
            "": lambda: self.llvm_ir,
            "opt": self.optimized_ir,
            "s": self.assembly,
            "asm": self.assembly,
        }
        reader = readers.get(fmt)
        if reader is None:
            raise CodegenError(f"expected one of {', '.join(readers)} as the format, got {fmt!r}")
        return reader()


class _Texts:
    """LLVM IR texts of which LLVM makes object code, optimised IR or assembly, beside each other.

    Compile workers do it, or this process where there can be none.
    """

    def __init__(self) -> None:
        self._batch = Batch(POOL)

    def __enter__(self) -> _Texts:
        self._batch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._batch.__exit__()

    def add(self, text: str, options: LLVMOptions, wanted: str) -> Callable[[], bytes]:
        """Begin to translate a text; what is returned waits for the result."""
        check_instructions(text, options)
        job = job_of(options, wanted, passes_for(text), in_order=text.startswith(IN_ORDER))
        _machine(*job[:4], job.position_independent)
        with self._explained():
            place = self._batch.add(text, job)
            if place is not None:
                return functools.partial(self._answer, place)
            here = _translated_here(text, job)
            return lambda: here

    def _answer(self, place: int) -> bytes:
        with self._explained():
            return self._batch.answer(place)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except NotTranslatedError as error:
            raise _failure(error.text, error.reason) from error.reason


_TOGETHER: Final[ContextVar[_Texts | None]] = ContextVar("compiled_together", default=None)


@contextmanager
def compiled_together() -> Iterator[None]:
    """Within, ``compile_emitted`` does not wait for LLVM; the ``object_code`` of its results does.

    So the compile workers optimise one module while this process makes the text of the next. What
    is not done at the end, by an error or an interrupt, is broken off.
    """
    with _Texts() as texts:
        token = _TOGETHER.set(texts)
        try:
            yield
        finally:
            _TOGETHER.reset(token)


def compile_emitted(
    text: str, specs: tuple[FunctionSpec, ...], options: LLVMOptions
) -> CompiledObject:
    """The object of LLVM IR text with the functions ``specs`` (of ``emit_module``)."""
    together = _TOGETHER.get()
    if together is not None:
        return CompiledObject(together.add(text, options, "object"), specs, options, lambda: text)
    code = compile_text(text, options)
    return CompiledObject(lambda: code, specs, options, lambda: text)


def begin_translation(text: str, options: LLVMOptions, wanted: str) -> Callable[[], bytes]:
    """As ``translated``, later: within ``compiled_together`` the compile workers begin now."""
    together = _TOGETHER.get()
    if together is None:
        return functools.partial(translated, text, options, wanted)
    return together.add(text, options, wanted)


def compile_text(text: str, options: LLVMOptions) -> bytes:
    """The object code of LLVM IR text."""
    return translated(text, options, "object")


def optimized(text: str, options: LLVMOptions) -> str:
    """LLVM IR text after LLVM's passes."""
    return translated(text, options, "ir").decode()


def translated(text: str, options: LLVMOptions, wanted: str) -> bytes:
    """What LLVM makes of IR text: object code, optimised IR or assembly (``worker.Job.wanted``)."""
    with _Texts() as texts:
        return texts.add(text, options, wanted)()


def _translated_here(text: str, job: Job) -> bytes:
    try:
        with phase("LLVM"):
            return translate(binding(), text, job)
    except (Refusal, MemoryError) as error:
        raise NotTranslatedError(text, error) from error


def _failure(text: str, reason: Exception) -> TVMError:
    """The error for a text that was not translated."""
    if isinstance(reason, Refusal):
        return InternalError(f"LLVM refuses the IR that weft wrote: {str(reason)[:400]}")
    if isinstance(reason, WorkerEndedError):
        advice = OUT_OF_MEMORY if reason.is_memory else LLVM_FAILED
        return CodegenError(f"LLVM cannot compile {_what(text)}: its process {reason}; {advice}")
    return CodegenError(f"no memory is left to compile {_what(text)}; {OUT_OF_MEMORY}")


def _what(text: str) -> str:
    """The names of the first functions in LLVM IR and its size, for a message.

    >>> _what("define i32 @weft__main() {}")
    'main (0 kB of LLVM IR)'
    """
    defined = _DEFINED.finditer(text)
    names = [match[1].removeprefix("weft__") for match in itertools.islice(defined, 3)]
    others = sum(1 for _ in defined)  # no list of them: memory is short when this is asked
    more = f" and {others} other functions" if others else ""
    return f"{', '.join(names)}{more} ({len(text) // 1000} kB of LLVM IR)"


def passes_for(text: str) -> str:
    """Which of LLVM's passes a text needs: ``ALL``, ``NO_SLP`` or ``FEW`` of the worker."""
    if text.removeprefix(IN_ORDER).startswith(SCHEDULED_BY_US):
        return FEW
    return ALL if SLP_MISTAKES.search(text) is None else NO_SLP


def job_of(options: LLVMOptions, wanted: str, passes: str = ALL, *, in_order: bool = False) -> Job:
    """What LLVM is to do for these options."""
    architecture = architecture_of(options.triple)
    in_order = in_order or not architecture.is_reordered
    return Job(*options[:4], passes, architecture.is_position_independent, wanted, in_order)


def _machine(
    triple: str, cpu: str, features: str, opt_level: int, position_independent: bool
) -> TargetMachine:
    """LLVM's target machine; CodegenError where this LLVM has no such target."""
    try:
        return target_machine(binding(), triple, cpu, features, opt_level, position_independent)
    except RuntimeError as error:
        raise CodegenError(
            f"this LLVM has no target for the triple {triple!r}: {str(error).strip()}"
        ) from error


@functools.cache
def llvm_version() -> str:
    """The version of the LLVM in llvmlite."""
    return ".".join([str(part) for part in binding().llvm_version_info])
