"""Compile a module's PrimFuncs through the object cache: what the driver calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

from weft.codegen import cache
from weft.codegen.backend import (
    Backend,
    KeptCode,
    NativeCode,
    WritingBackend,
    WrittenCode,
    backend_of,
    joins_objects,
    sources_of,
    writes_first,
)
from weft.codegen.join_objects import join_objects
from weft.codegen.llvm.compile import compiled_together, llvm_version
from weft.codegen.llvm.emit import prim_funcs
from weft.codegen.llvm.worker_pool import POOL
from weft.codegen.parts import parts_of, with_declarations
from weft.ir.module import IRModule
from weft.runtime.call.spec import FunctionSpec
from weft.support.events import happened
from weft.support.progress import awaited, phase, tell
from weft.support.shared_tasks import results
from weft.target.target import Target, TargetLike, as_target

_LOG: Final = logging.getLogger(__name__)


def compile_cached(
    mod: IRModule,
    target: TargetLike | None = None,
    *,
    checks: bool = True,
    lower: Callable[[IRModule], IRModule] | None = None,
    options: tuple[object, ...] = (),
    in_parts: bool = True,
) -> NativeCode:
    """The object code of ``mod``; each of its parts from the cache if it was compiled before.

    ``lower`` brings a module to the form that code generation takes; it runs only for parts whose
    code is not in the cache, and maybe in another process.
    ``options`` are further values that decide the code, such as the pass configuration.
    ``in_parts``: False compiles the module at once, for instruments that look at whole programs.
    """
    resolved = as_target("llvm" if target is None else target)
    backend = backend_of(resolved)
    machine, described = backend.options(resolved), resolved.structural_bytes()
    sources = None if cache.cache_folder() is None else sources_of(backend)  # no key for no cache
    origin = b"" if sources is None else cache.origin_digest()
    emission = _Emission(lower, backend, resolved, checks)

    def key_of(module: IRModule) -> str | None:
        if sources is None:
            return None
        settings = machine, described, checks, llvm_version(), options, sources
        return cache.make_key(prim_funcs(module).items(), *settings, origin=origin)

    parts, callers = parts_of(mod) if in_parts and joins_objects(backend) else ([mod], None)
    with compiled_together():
        work = _Work(emission, key_of, len(parts) + (callers is not None))
        work.add(parts)
        if callers is not None:
            work.add([with_declarations(callers, parts, work.specs())])
        objects = work.objects()
    only = work.only()
    if only is not None:
        return only
    specs = {spec.name: spec for spec in work.specs()}
    ordered = tuple([specs[name] for name in prim_funcs(mod)])
    with phase("joining"):
        joined = join_objects(objects)
    return KeptCode(joined, ordered, machine, lambda: emission.of(mod))


class _Emission(NamedTuple):
    """How modules become code."""

    lower: Callable[[IRModule], IRModule] | None
    backend: Backend
    target: Target
    checks: bool

    def of(self, module: IRModule) -> NativeCode:
        """The code of a module, which this process lowers and emits."""
        lowered = self._lowered(module)
        with phase("emission"):
            return self.backend.emit(lowered, self.target, checks=self.checks)

    def of_each(self, modules: Sequence[IRModule]) -> Generator[tuple[int, NativeCode], None, None]:
        """The code of each module with its place, as it comes.

        Where a backend writes a text first, forked processes share in that work.
        """
        backend = self.backend
        if not writes_first(backend):
            yield from enumerate(map(self.of, modules))
            return
        tasks = [partial(self._written, backend, module) for module in modules]
        with closing(results(tasks)) as shared:
            for place, written in awaited("lowering", shared):
                yield place, backend.compile(written, self.target)

    def _written(self, backend: WritingBackend, module: IRModule) -> WrittenCode:
        lowered = self._lowered(module)
        with phase("emission"):
            return backend.write(lowered, self.target, checks=self.checks)

    def _lowered(self, module: IRModule) -> IRModule:
        with phase("lowering"):
            return module if self.lower is None else self.lower(module)


class _Kept(NamedTuple):
    """A part from the cache."""

    object_code: bytes
    specs: tuple[FunctionSpec, ...]


class _Work:
    """The parts of one module: from the cache, or compiled and put there."""

    def __init__(
        self, emission: _Emission, key_of: Callable[[IRModule], str | None], total: int
    ) -> None:
        self._emission, self._key_of, self._total = emission, key_of, total
        self._codes: list[_Kept | NativeCode] = []
        self._new: list[tuple[str | None, NativeCode]] = []

    def add(self, parts: Sequence[IRModule]) -> None:
        """Take parts from the cache, or begin to compile them."""
        keys = [self._key(part) for part in parts]
        codes: dict[int, _Kept | NativeCode] = {}
        for place, (part, key) in enumerate(zip(parts, keys, strict=True)):
            kept = _kept(part, key)
            if kept is not None:
                codes[place] = kept
        missing = [place for place in range(len(parts)) if place not in codes]
        if missing:
            POOL.warm()  # a worker starts while this process lowers
            self._tell(len(codes))
        with closing(self._emission.of_each([parts[place] for place in missing])) as compiled:
            for at, code in compiled:
                codes[missing[at]] = code
                self._new.append((keys[missing[at]], code))
                if len(codes) < len(parts):
                    self._tell(len(codes))
        self._codes += [codes[place] for place in range(len(parts))]

    def _key(self, part: IRModule) -> str | None:
        with phase("cache"):
            return self._key_of(part)

    def _tell(self, done: int) -> None:
        tell("compiling kernels", len(self._codes) + done + 1, self._total)

    def only(self) -> NativeCode | None:
        """The code of the one part that there is, if it was compiled just now; it has its text."""
        return self._new[0][1] if len(self._new) == len(self._codes) == 1 else None

    def specs(self) -> list[FunctionSpec]:
        """How each function of the parts so far is called."""
        return [spec for code in self._codes for spec in code.specs]

    def objects(self) -> list[bytes]:
        """The object code of each part; what was compiled is in the cache then."""
        cached = len(self._codes) - len(self._new)
        _LOG.info("code of kernels: %d from the cache, %d compiled", cached, len(self._new))
        if self._new:
            tell("optimising kernels")
        for key, code in self._new:
            if key is not None:
                specs, content = [spec.to_json() for spec in code.specs], code.object_code
                with phase("cache"):
                    cache.store(key, {"specs": specs}, content)
        return [code.object_code for code in self._codes]


def _kept(part: IRModule, key: str | None) -> _Kept | None:
    """The code of a part from the cache, if it is there."""
    with phase("cache"):
        entry = None if key is None else cache.load(key)
    happened("code", [var.name_hint for var in part.functions], entry is not None, key)
    if entry is None:
        return None
    description, code = entry
    return _Kept(code, tuple([FunctionSpec.from_json(item) for item in description["specs"]]))
