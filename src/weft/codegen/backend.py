"""What a backend is, and which one compiles for a target.

A backend is a folder (``weft.backends.cpu``) with one object of the form of ``Backend``: it answers
for one kind of target which passes run, which schedules kernels get, and makes their code. The
driver asks it; nothing else knows which backends there are.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeGuard, cast

from weft.backends.cpu.isa import architecture_of
from weft.dlight.apply import ScheduleRule
from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.runtime.artifact.weft_file import Artifact
from weft.runtime.call.spec import FunctionSpec
from weft.support import plugins, slots
from weft.support.errors import CodegenError
from weft.support.lazy_property import lazy_property
from weft.support.registration import refuse_second
from weft.target.host import LLVMOptions
from weft.target.kinds import KINDS, TargetKind
from weft.target.machine import Machine
from weft.target.target import Target


class NativeCode(Protocol):
    """Compiled functions: their object code, how each is called, and their texts."""

    @property
    def object_code(self) -> bytes:
        """A relocatable object file."""

    @property
    def specs(self) -> tuple[FunctionSpec, ...]:
        """How each function is called."""

    @property
    def options(self) -> LLVMOptions:
        """The system and the processor that the code is for."""

    def get_source(self, fmt: str = "ll") -> str:
        """The code as text: LLVM IR (``ll``, ``opt``) or assembly (``asm``)."""


class Backend(Protocol):
    """What the compiler asks of a processor: an object for each kind of target.

    Passes come as tuples, so that a pass can be put between two of them by name
    (``weft.driver.pipeline.insert``).
    """

    @property
    def kind(self) -> TargetKind:
        """The kind of target that this backend compiles for, with the options that it takes."""

    def features(self, target: Target) -> Machine:
        """What passes and schedules ask of the processor: cores, vectors, caches."""

    def options(self, target: Target) -> LLVMOptions:
        """The system and the processor that ``emit`` makes code for."""

    def graph(self, target: Target) -> tuple[Pass, ...]:
        """The pipeline ``weft``: from a graph to scheduled kernels and calls of them."""

    def lower(self, target: Target) -> tuple[Pass, ...]:
        """From a PrimFunc with blocks to the form that ``emit`` takes."""

    def schedules(self, target: Target) -> tuple[ScheduleRule, ...]:
        """The rules of default schedules; of those that fit a function the first one counts."""

    def emit(self, mod: IRModule, target: Target, *, checks: bool) -> NativeCode:
        """Compile every lowered PrimFunc of ``mod``; ``checks``: test indices at run time."""


class WrittenCode(NamedTuple):
    """Functions as a text that is still to be compiled, and how each is called."""

    text: str
    specs: tuple[FunctionSpec, ...]


class WritingBackend(Backend, Protocol):
    """A backend that emits code in two steps.

    ``write`` may run in a process of its own; what that process keeps, such as files, is lost.
    """

    def write(self, mod: IRModule, target: Target, *, checks: bool) -> WrittenCode:
        """The text of every lowered PrimFunc of ``mod``."""

    def compile(self, written: WrittenCode, target: Target) -> NativeCode:
        """The code of a text; ``emit`` is ``compile`` after ``write``."""


@dataclass(frozen=True)
class KeptCode:
    """Object code; its texts are made by ``emit``, again, for whoever asks for them."""

    object_code: bytes
    specs: tuple[FunctionSpec, ...]
    options: LLVMOptions
    emit: Callable[[], NativeCode]

    @lazy_property
    def _emitted(self) -> NativeCode:
        return self.emit()

    def get_source(self, fmt: str = "ll") -> str:
        """The code as text, as it was when it was compiled."""
        return self._emitted.get_source(fmt)


_PARTS: Final = ("kind", "features", "options", "graph", "lower", "schedules", "emit")
_PLACES: Final = {
    "llvm": "weft.backends.cpu.backend:BACKEND",
    "wasm": "weft.backends.wasm.backend:BACKEND",
}
"""Kind of target -> the object of weft's own backend, ``module:object``."""
_BACKENDS: Final[dict[str, Backend]] = {}
"""The backends in use."""


def register_backend(backend: Backend, *, override: bool = False) -> Backend:
    """Let ``backend`` compile for its kind of target; ``Target`` knows the kind from then on.

    Raises:
        IRValueError: another backend compiles for this kind, and ``override`` is not given.
    """
    name = backend.kind.name
    is_taken = name in _PLACES or _BACKENDS.get(name, backend) is not backend
    refuse_second("the backend of the target kind", name, is_taken, override)
    KINDS[name] = backend.kind
    _BACKENDS[name] = backend
    return backend


def plugin_kind(name: str) -> TargetKind | None:
    """The kind of that name from an installed plug-in, whose backend is registered with it."""
    backend = plugins.named(plugins.TARGETS, name)
    if backend is None:
        return None
    missing = [part for part in _PARTS if not hasattr(backend, part)]
    kind = getattr(backend, "kind", None)
    if missing or not isinstance(kind, TargetKind) or kind.name != name:
        problem = f"it has no {', '.join(missing)}" if missing else f"its kind is {kind}"
        raise plugins.PluginError(
            f"the plug-in {name!r} of {plugins.TARGETS} is no backend of the target kind {name!r}: "
            f"{problem}; expected the parts of weft.codegen.backend.Backend"
        )
    return register_backend(cast(Backend, backend)).kind


def has_backend(kind: TargetKind) -> bool:
    """Whether code can be generated for targets of a kind."""
    return kind.name in _BACKENDS or kind.name in _PLACES


_ON_CPUS: Final = (
    "; weft has no code for GPUs; with target='llvm' loops that are bound to threads run on the CPU"
)


def backend_of(target: Target) -> Backend:
    """The backend that compiles for a target.

    >>> backend_of(Target("llvm -num-cores=3")).features(Target("llvm -num-cores=3")).cores
    3

    Raises:
        CodegenError: there is none for its kind.
    """
    name = target.kind.name
    backend = _BACKENDS.get(name)
    if backend is None and name in _PLACES:
        module, _, attribute = _PLACES[name].partition(":")
        backend = _BACKENDS[name] = getattr(importlib.import_module(module), attribute)
    if backend is None:
        kinds = ", ".join(repr(kind) for kind in sorted({*_PLACES, *_BACKENDS}))
        raise CodegenError(
            f"code generation for the target kind {name!r} is not available; expected {kinds}"
            + (_ON_CPUS if "gpu" in target.kind.default_keys else "")
        )
    return backend


def joins_objects(backend: Backend) -> bool:
    """Whether ``emit`` gives relocatable ELF objects, so that functions can be compiled one by one.

    A backend says so by an attribute ``joins_objects``; where it has none, each module is compiled
    at once.
    """
    return bool(getattr(backend, "joins_objects", False))


def writes_first(backend: Backend) -> TypeGuard[WritingBackend]:
    """Whether a backend has the two steps of ``WritingBackend``.

    One that inherits them and has an ``emit`` of its own does not use them.
    """
    for kind in type(backend).__mro__:
        if "write" in vars(kind) and "compile" in vars(kind):
            return True
        if "emit" in vars(kind):
            return False
    return False


def sources_of(backend: Backend) -> bytes | None:
    """What tells the code of a backend: nothing for weft's own, which digests of weft cover.

    None where nothing tells it, so that what it compiles is not kept.
    """
    module = type(backend).__module__
    own = plugins.digest_of(module)
    return plugins.sources_digest(module) if own is None else own


def package_writer(triple: str) -> Callable[[Artifact, Path], None] | None:
    """What writes a model with code for a system as a folder; None where models are files."""
    module, _, name = architecture_of(triple).package.partition(":")
    return getattr(importlib.import_module(module), name) if module else None


def writes_folders(target: Target) -> bool:
    """Whether a model for a target is written as a folder."""
    return package_writer(backend_of(target).options(target).triple) is not None


slots.backend_of.fill(backend_of)
slots.package_writer.fill(package_writer)
slots.plugin_kind.fill(plugin_kind)
