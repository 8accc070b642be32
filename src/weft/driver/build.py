"""``weft.build`` and ``relax.build``: compile a module to something that runs.

``build`` compiles PrimFuncs as they are written: it lowers them, and never fuses or schedules.
``relax.build`` also legalises operators and lowers graph functions for the virtual machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weft.codegen.backend import NativeCode, backend_of, writes_folders
from weft.codegen.build import compile_cached
from weft.driver.flops import count_kernels
from weft.driver.operators import OperatorRunner
from weft.driver.pipeline import (
    Pipeline,
    is_default_tir,
    lower_tir,
    relax_pipeline_of,
    tir_pipeline_of,
)
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import PassContext
from weft.relax.analysis.types import verify_calls
from weft.relax.distributed.execution import refuse_distributed
from weft.relax.expr import Function
from weft.relax.transform.graph.bind import BindParams
from weft.relax.vm.lower import LoweredModule, attach_native, lower_functions
from weft.runtime.module import Executable as TirExecutable
from weft.runtime.native import object_file
from weft.runtime.native.foreign import CompiledFunction
from weft.runtime.native.object_code import ObjectCode, check_processor
from weft.runtime.registry import register_func
from weft.runtime.vm.builtins import RUN_OPERATOR
from weft.runtime.vm.executable import Executable
from weft.support import slots
from weft.support.errors import IRTypeError, PassError, UnsupportedError
from weft.support.events import happened
from weft.support.garbage import rare_collections
from weft.support.progress import phase
from weft.support.public_entry import public_entry
from weft.target.features import required_features
from weft.target.target import Target, TargetLike, target_meant
from weft.tir.analysis.axis_domains import check_axis_domains
from weft.tir.analysis.bounds import check_bounds
from weft.tir.analysis.intrinsic_calls import check_intrinsic_calls
from weft.tir.analysis.shared_symbols import refuse_shared_symbols
from weft.tir.function import PrimFunc
from weft.tir.lowering.trusted_parts import refuse_trusted_parts

_UNSET: Final = object()
SOURCE_FORMATS: Final = ("ll", "opt", "asm", "s")
"""What ``get_source`` of a compiled module takes (NativeCode.get_source)."""


def as_module(mod: object, name: str | None = None) -> IRModule:
    """A module from a module, a function, or a list or dict of functions."""
    if isinstance(mod, IRModule):
        return mod
    if isinstance(mod, PrimFunc):
        symbol = name or str(mod.attrs.get("global_symbol", "main"))
        return IRModule({symbol: mod.with_attr("global_symbol", symbol)})
    if isinstance(mod, Function):
        return IRModule({name or str(mod.attrs.get("global_symbol", "main")): mod})
    if isinstance(mod, dict):
        return IRModule(mod)
    if isinstance(mod, list | tuple):
        merged = IRModule()
        for item in mod:
            merged.update(as_module(item))
        return merged
    raise IRTypeError(
        f"build: expected an IRModule or a function, got {type(mod).__name__}; a TE program "
        "becomes a function with te.create_prim_func"
    )


def lower(mod: object, name: str | None = None) -> IRModule:
    """Lower a module to what code generation takes: loops over buffers, without blocks.

    ``name`` is the name of a single function, as in ``build``.
    """
    return lower_tir()(as_module(mod, name))


@public_entry("weft.build")
def build(
    mod: Any,
    target: TargetLike | None = None,
    *,
    name: str | None = None,
    pipeline: Pipeline = None,
    checks: bool = True,
) -> TirExecutable:
    """Compile PrimFuncs to native code.

    Args:
        mod: an IRModule of PrimFuncs, or one PrimFunc.
        target: a Target, a string such as ``"llvm -mcpu=native"``, a dict, or None.
        name: the name of a single function (default: its ``global_symbol``, or ``main``).
        pipeline: a pass to run instead of the default lowering (None or ``"default"``).
        checks: whether indices and divisors that are not proved safe are tested at run time.

    Returns:
        A runtime module: ``rt["f"](arrays...)``, ``rt.time_evaluator``, ``rt.get_source``.

    >>> import numpy as np, weft
    >>> from weft import te
    >>> x = te.placeholder((4,), name="x")
    >>> f = weft.build(te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)]))
    >>> y = weft.nd.empty((4,)); f(weft.nd.array(np.zeros(4, "float32")), y); print(y)
    [1. 1. 1. 1.]
    """
    resolved = target_meant(target)
    module = as_module(mod, name)
    foreign = [var.name_hint for var, f in module.functions.items() if not isinstance(f, PrimFunc)]
    if foreign:
        raise IRTypeError(
            f"build: {', '.join(foreign)} is no PrimFunc; use weft.compile or relax.build for "
            "modules with graph functions"
        )
    if not module.functions:
        raise IRTypeError("build: expected at least one function, got an empty module")
    named = IRModule(
        {
            var: _with_symbol(var.name_hint, expect(func, PrimFunc))
            for var, func in module.functions.items()
        },
        None,
        module.attrs,
    )
    refuse_shared_symbols(named)
    check_intrinsic_calls(named)
    if checks:
        check_axis_domains(named)
        refuse_trusted_parts(named)
    happened("lowered", named, None)
    compiled = _compiled(named, resolved, pipeline, checks)
    code, entry = object_code(compiled), _entry(named)
    return TirExecutable(
        code.load(),
        sources=_sources(compiled),
        entry=entry,
        exported=lambda: object_file.to_bytes(code, entry),
    )


@rare_collections
def _compiled(mod: IRModule, target: Target, pipeline: object, checks: bool) -> NativeCode:
    """The object code of a module, from the cache if the same module was compiled before.

    With the default lowering, the key of the cache is made of the module itself, and lowering need
    not run for a hit. Another pipeline is not part of a key, and instruments expect passes to run;
    in these cases the module is lowered first, and the key is made of the result.
    """
    lowering = tir_pipeline_of(pipeline, target)
    context = PassContext.current()

    def lowered(module: IRModule) -> IRModule:
        if checks:
            for func in module.functions.values():
                if isinstance(func, PrimFunc):
                    check_bounds(func)
        with target:
            return lowering(module)

    def lowered_again(module: IRModule) -> IRModule:
        with context:  # the source of cached code may be asked for later, in another context
            return lowered(module)

    if context.instruments or not is_default_tir(pipeline):
        program = lowered(mod)
        compiled = compile_cached(program, target, checks=checks, in_parts=not context.instruments)
        _observe_code(context, program, compiled, target, checks)
        return compiled
    settings = sorted((name, repr(value)) for name, value in context.config.items())
    options = (context.opt_level, settings, context.required_pass, context.disabled_pass)
    return compile_cached(mod, target, checks=checks, lower=lowered_again, options=options)


def _observe_code(
    context: PassContext, program: IRModule, compiled: NativeCode, target: Target, checks: bool
) -> None:
    """Call the instruments that look at compiled code (``run_after_codegen``)."""
    code = object_code(compiled)

    def native() -> dict[str, CompiledFunction]:
        check_processor(code)  # code for another processor raises ArtifactTargetError here
        return code.load()

    def compile_module(module: IRModule) -> dict[str, CompiledFunction]:
        return object_code(compile_cached(module, target, checks=checks)).load()

    for hook in _hooks(context, "run_after_codegen"):
        hook(program, native, compile_module)


def _hooks(context: PassContext, name: str) -> list[Callable[..., None]]:
    """The methods called ``name`` of the instruments in a context, for those that have one."""
    hooks = [getattr(instrument, name, None) for instrument in context.instruments]
    return [hook for hook in hooks if hook is not None]


def _with_symbol(name: str, func: PrimFunc) -> PrimFunc:
    has_symbol = "global_symbol" in func.attrs
    return func if has_symbol else func.with_attr("global_symbol", name)


def _entry(mod: IRModule) -> str | None:
    marked = [f for f in mod.functions.values() if f.attrs.get("tir.is_entry_func")]
    return str(marked[0].attrs["global_symbol"]) if len(marked) == 1 else None


def object_code(compiled: NativeCode) -> ObjectCode:
    """Compiled code in the form that is kept in memory and written to disk."""
    options = compiled.options
    return ObjectCode(
        compiled.object_code,
        compiled.specs,
        options.triple,
        options.cpu,
        required_features(options),
    )


def _no_kernels(libraries: Sequence[Any]) -> TirExecutable:
    return TirExecutable({}, imports=libraries)


def _empty_code(target: Target) -> ObjectCode | None:
    """The code of a model that has none: where models are folders, it tells whoever saves it so."""
    options = backend_of(target).options(target)
    return ObjectCode(b"", (), options.triple, options.cpu) if writes_folders(target) else None


def _sources(compiled: NativeCode) -> dict[str, Callable[[], str]]:
    def reader(fmt: str) -> Callable[[], str]:
        return lambda: compiled.get_source(fmt)

    return {fmt: reader(fmt) for fmt in SOURCE_FORMATS}


@public_entry("relax.build")
@rare_collections
def relax_build(
    mod: Any,
    target: TargetLike | None = None,
    params: Mapping[str, object] | None = None,
    relax_pipeline: Pipeline = "default",
    tir_pipeline: Pipeline = "default",
    exec_mode: str = "bytecode",
    *,
    pipeline: Any = _UNSET,
    checks: bool = True,
    system_lib: bool | None = None,
) -> Executable:
    """Build a module with graph functions for the virtual machine.

    Args:
        mod: an IRModule (or one Relax function).
        target: as for ``weft.build``.
        params: arrays to bind to parameters of ``main`` by name.
        relax_pipeline: ``"default"``, another registered name, a pass, or None for no passes.
        tir_pipeline: ``"default"``, or a pass that lowers the PrimFuncs.
        exec_mode: ``"bytecode"`` or ``"compiled"``, TVM's choice of executor. Both build the same:
            an executable has native code and bytecode, and the virtual machine chooses.
        pipeline: the name of ``relax_pipeline`` until 0.19.
        checks: as for ``weft.build``.
        system_lib: not available; None or False.

    Returns:
        An Executable for ``relax.VirtualMachine(ex, weft.cpu())``.

    >>> import numpy as np, weft
    >>> from weft import relax
    >>> x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    >>> builder = relax.BlockBuilder()
    >>> with builder.function("main", [x]):
    ...     main = builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    >>> vm = relax.VirtualMachine(relax.build(builder.get()), weft.cpu())
    >>> print(vm["main"](np.array([-1, 0, 2], "float32")))
    [0. 0. 2.]
    """
    resolved = target_meant(target)
    if exec_mode not in ("bytecode", "compiled"):
        raise PassError(f"exec_mode: expected 'bytecode' or 'compiled', got {exec_mode!r}")
    if system_lib:
        raise UnsupportedError("relax.build: system_lib is not available: code stays in memory")
    if pipeline is not _UNSET:
        relax_pipeline = pipeline
    module = as_module(mod)
    refuse_distributed(module, "relax.build")
    if params:
        module = BindParams("main", params)(module)
    with resolved:
        verify_calls(module)
        check_intrinsic_calls(module)
        check_axis_domains(module)
        with phase("graph"):
            module = relax_pipeline_of(relax_pipeline)(module)
        refuse_trusted_parts(module)
    libraries = list(module.attrs.get("external_mods") or ())
    if libraries:
        module = module.without_attr("external_mods").without_attr("const_name_to_constant")
    with phase("graph"):
        lowered = lower_functions(module, {name for item in libraries for name in item.functions})
    happened("lowered", module, lowered)
    executable = build_lowered(lowered, resolved, tir_pipeline, checks=checks, libraries=libraries)
    if executable.code is not None:
        for hook in _hooks(PassContext.current(), "run_after_build"):
            hook(module, executable)
    return executable


def build_lowered(
    lowered: LoweredModule,
    target: Target,
    tir_pipeline: Pipeline = "default",
    *,
    checks: bool = True,
    libraries: Sequence[Any] = (),
) -> Executable:
    """The executable of lowered functions, whose kernels and hosts are compiled.

    ``libraries`` are modules of compiled functions that the executable imports.
    """
    if not lowered.tir.functions:
        return Executable(lowered.program, _no_kernels(libraries), code=_empty_code(target))
    compiled = _compiled(lowered.tir, target, tir_pipeline, checks)
    attach_native(lowered, {spec.name: spec for spec in compiled.specs})
    code = object_code(compiled)
    with phase("loading"):
        functions = code.load()
    for helper in lowered.helpers():
        functions.pop(helper)
    hosts = {name: functions.pop(host.symbol) for name, host in lowered.hosts.items()}
    kernels = TirExecutable(functions, sources=_sources(compiled), imports=libraries)
    return Executable(lowered.program, kernels, hosts, partial(count_kernels, lowered.tir), code)


register_func(RUN_OPERATOR, OperatorRunner(relax_build), override=True)
slots.relax_build.fill(relax_build)
