"""Compile a module's PrimFuncs through the object cache: what the driver calls."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.codegen import cache
from weft.codegen.backend import KeptCode, NativeCode, backend_of, joins_objects, sources_of
from weft.codegen.join_objects import join_objects
from weft.codegen.llvm.compile import compiled_together, llvm_version
from weft.codegen.llvm.emit import prim_funcs
from weft.codegen.llvm.worker_pool import POOL
from weft.codegen.parts import parts_of, with_declarations
from weft.ir.module import IRModule
from weft.runtime.call.spec import FunctionSpec
from weft.support.events import happened
from weft.support.progress import phase, tell
from weft.target.target import TargetLike, as_target

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
    code is not in the cache.
    ``options`` are further values that decide the code, such as the pass configuration.
    ``in_parts``: False compiles the module at once, for instruments that look at whole programs.
    """
    resolved = as_target("llvm" if target is None else target)
    backend = backend_of(resolved)
    machine, described = backend.options(resolved), resolved.structural_bytes()
    sources, origin = sources_of(backend), cache.origin_digest()

    def emitted(module: IRModule) -> NativeCode:
        with phase("lowering"):
            lowered = module if lower is None else lower(module)
        with phase("emission"):
            return backend.emit(lowered, resolved, checks=checks)

    def key_of(module: IRModule) -> str | None:
        if sources is None:
            return None
        settings = machine, described, checks, llvm_version(), options, sources
        return cache.make_key(prim_funcs(module).items(), *settings, origin=origin)

    parts, callers = parts_of(mod) if in_parts and joins_objects(backend) else ([mod], None)
    with compiled_together():
        work = _Work(emitted, key_of, len(parts) + (callers is not None))
        for part in parts:
            work.add(part)
        if callers is not None:
            work.add(with_declarations(callers, parts, work.specs()))
        objects = work.objects()
    only = work.only()
    if only is not None:
        return only
    specs = {spec.name: spec for spec in work.specs()}
    ordered = tuple([specs[name] for name in prim_funcs(mod)])
    with phase("joining"):
        joined = join_objects(objects)
    return KeptCode(joined, ordered, machine, lambda: emitted(mod))


class _Kept(NamedTuple):
    """A part from the cache."""

    object_code: bytes
    specs: tuple[FunctionSpec, ...]


class _Work:
    """The parts of one module: from the cache, or compiled and put there."""

    def __init__(
        self,
        emitted: Callable[[IRModule], NativeCode],
        key_of: Callable[[IRModule], str | None],
        total: int,
    ) -> None:
        self._emitted, self._key_of, self._total = emitted, key_of, total
        self._codes: list[_Kept | NativeCode] = []
        self._new: list[tuple[str | None, NativeCode]] = []

    def add(self, part: IRModule) -> None:
        """Take a part from the cache, or begin to compile it."""
        with phase("cache"):
            key = self._key_of(part)
            entry = None if key is None else cache.load(key)
        happened("code", [var.name_hint for var in part.functions], entry is not None, key)
        if entry is not None:
            description, code = entry
            specs = [FunctionSpec.from_json(item) for item in description["specs"]]
            self._codes.append(_Kept(code, tuple(specs)))
            return
        POOL.warm()  # a worker starts while this process lowers
        tell("compiling kernels", len(self._codes) + 1, self._total)
        begun = self._emitted(part)
        self._codes.append(begun)
        self._new.append((key, begun))

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
