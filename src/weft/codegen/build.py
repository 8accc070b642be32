"""Compile a module's PrimFuncs through the object cache: what the driver calls."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen import cache
from weft.codegen.backend import KeptCode, NativeCode, backend_of, sources_of
from weft.codegen.llvm.compile import llvm_version
from weft.codegen.llvm.emit import prim_funcs
from weft.codegen.llvm.worker_pool import POOL
from weft.ir.module import IRModule
from weft.runtime.call.spec import FunctionSpec
from weft.target.target import TargetLike, as_target


def compile_cached(
    mod: IRModule,
    target: TargetLike | None = None,
    *,
    checks: bool = True,
    lower: Callable[[IRModule], IRModule] | None = None,
    options: tuple[object, ...] = (),
) -> NativeCode:
    """The object code of ``mod``, from the cache if it was compiled before.

    ``lower`` brings ``mod`` to the form that code generation takes; it runs only where the code is
    not in the cache.
    ``options`` are further values that decide the code, such as the pass configuration.
    """
    resolved = as_target("llvm" if target is None else target)
    backend = backend_of(resolved)
    machine, described = backend.options(resolved), resolved.structural_bytes()
    functions = prim_funcs(mod).items()
    sources = sources_of(backend)
    key = cache.make_key(functions, machine, described, checks, llvm_version(), options, sources)

    def emitted() -> NativeCode:
        return backend.emit(mod if lower is None else lower(mod), resolved, checks=checks)

    entry = None if sources is None else cache.load(key)
    if entry is not None:
        description, code = entry
        kept = tuple([FunctionSpec.from_json(item) for item in description["specs"]])
        return KeptCode(code, kept, machine, emitted)
    POOL.warm()  # a worker starts while this process lowers
    compiled = emitted()
    if sources is not None:
        specs = [spec.to_json() for spec in compiled.specs]
        cache.store(key, {"specs": specs}, compiled.object_code)
    return compiled
