"""A legalised module to what an Executable holds: a Program and the TensorIR to compile.

Every Relax function gets bytecode; where ``weft.relax.vm.host`` can express it, also a host
function that is compiled beside the kernels.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from weft.codegen.llvm.signature import signature_of
from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.relax.expr import ExternFunc, Function
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.vm.bytecode import ProgramBuilder
from weft.relax.vm.extents import Symbols
from weft.relax.vm.host import HostBuilder, HostFunction, NotNative
from weft.relax.vm.host_parts import Described, ShapeCheck
from weft.relax.vm.regions import outline_regions
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes, Program, Result
from weft.support.errors import LegalizeError
from weft.support.recursion import deep_recursion
from weft.tir.analysis.shared_symbols import refuse_shared_symbols
from weft.tir.buffer import Buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, While

HOST_SUFFIX = "__host"


@dataclass
class LoweredModule:
    """The program, the kernels and host functions to compile, and what each host returns."""

    program: Program
    tir: IRModule
    hosts: dict[str, HostFunction]

    def helpers(self) -> list[str]:
        """The names of the PrimFuncs that hosts call and nobody else."""
        helpers = [helper for host in self.hosts.values() for helper in host.helpers]
        return [str(helper.attrs["global_symbol"]) for helper in helpers]


@deep_recursion
def lower_functions(mod: IRModule, linked: Container[str] = ()) -> LoweredModule:
    """Lower the Relax functions of a module; PrimFuncs are taken over as they are.

    ``linked`` are the functions of libraries that the executable will import.
    """
    refuse_shared_symbols(mod)
    kernels = IRModule()
    for var, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            name = str(func.attrs.get("global_symbol", var.name_hint))
            kernels[name] = func.with_attr("global_symbol", name)
        elif not isinstance(func, Function | ExternFunc):
            raise LegalizeError(
                f"relax.build: the function {var.name_hint} is a {type(func).__name__}; expected "
                "PrimFuncs and Relax functions"
            )
    hosts = _Hosts(mod, kernels, linked)
    whole = _with_regions(mod, hosts)
    builder = ProgramBuilder(whole)
    for var, func in whole.functions.items():
        if isinstance(func, Function):
            builder.add(var.name_hint, func)
            hosts.add(var.name_hint, func)
    for name, reason in hosts.reasons.items():
        lowered = builder.program.functions[name]
        builder.program.functions[name] = replace(lowered, why_not_native=reason)
    return LoweredModule(builder.program, kernels, hosts.built)


class _Hosts:
    """The host functions of a module, which join its kernels, and why others have none."""

    def __init__(self, mod: IRModule, kernels: IRModule, linked: Container[str]) -> None:
        self.mod, self.kernels, self.linked = mod, kernels, linked
        self.built: dict[str, HostFunction] = {}
        self.reasons: dict[str, str] = {}

    def add(self, name: str, func: Function) -> bool:
        """Make the host of a function, unless that was tried; whether it has one."""
        if name not in self.built and name not in self.reasons:
            symbol = name + HOST_SUFFIX
            while symbol in self.mod or symbol in self.kernels:
                symbol += "_"
            try:
                _refuse_libraries(self.mod, func, self.linked)
                host = HostBuilder(self.mod, symbol, func, name).build()
            except NotNative as reason:
                self.reasons[name] = str(reason)
                return False
            self.built[name] = host
            self.kernels[symbol] = host.func
            for helper in host.helpers:
                self.kernels[str(helper.attrs["global_symbol"])] = helper
        return name in self.built


def _with_regions(mod: IRModule, hosts: _Hosts) -> IRModule:
    """The module; functions that have no host call functions for their runs of kernels."""
    whole = IRModule(mod.functions, None, mod.attrs, mod.global_infos)

    def add(name: str, function: Function) -> GlobalVar:
        unique, number = name, 0
        while unique in whole or unique in hosts.kernels:
            number += 1
            unique = f"{name}{number}"
        whole[unique] = function
        return whole.get_global_var(unique)

    for var, func in mod.functions.items():
        if isinstance(func, Function) and not hosts.add(var.name_hint, func):
            whole[var] = outline_regions(var.name_hint, func, add)
    return whole


def _refuse_libraries(mod: IRModule, func: Function, linked: Container[str]) -> None:
    """NotNative if a function, or one that is expanded in it, calls what is in a library only."""
    todo, met = [func], {id(func)}
    for function in todo:
        for name in [callee.global_symbol for callee in collect(function, ExternFunc)]:
            if name in linked:
                raise NotNative(f"it calls a function of a library: {name}")
        for callee in collect(function, GlobalVar):
            other = mod[callee] if callee.name_hint in mod else None
            if isinstance(other, Function) and id(other) not in met:
                met.add(id(other))
                todo.append(other)


@deep_recursion
def attach_native(lowered: LoweredModule, specs: dict[str, FunctionSpec]) -> None:
    """Give each function its NativeEntry, now that the specs of the host functions are known."""
    index_of = {id(data): i for i, data in enumerate(lowered.program.constants)}
    for name, host in lowered.hosts.items():
        compiled = specs[host.symbol]
        params = _with_effects(host, compiled, specs)
        spec = replace(compiled, name=name, symbol=compiled.native_symbol, params=params)
        symbols = _symbols_of(host.func, host.symbol)
        outputs = []
        for param in spec.params[host.inputs : host.inputs + len(host.outputs)]:
            outputs.append((param.dtype, param.shape))
        constants = tuple([index_of[id(constant.data)] for constant in host.constants])
        entry = NativeEntry(
            spec,
            tuple(outputs),
            _result(host.result, symbols),
            host.plan.size or 0,
            _planned(host, symbols),
            constants,
            tuple([_check(check, symbols) for check in host.checks]),
            tuple([(symbols.name(var), limit) for var, limit in host.limits]),
            None if host.layout is None else tuple([_layout(x, symbols) for x in host.layout]),
            recursive=bool(host.helpers),
            loops=bool(collect(host.func.body, While)),
        )
        function = lowered.program.functions[name]
        lowered.program.functions[name] = replace(function, native=entry)


def _with_effects(
    host: HostFunction, compiled: FunctionSpec, specs: dict[str, FunctionSpec]
) -> tuple[ParamSpec, ...]:
    """The parameters of a host; those that no kernel and no callback writes become read only."""
    helpers = {str(func.attrs["global_symbol"]): func for func in host.helpers}
    effects: dict[str, set[int]] = {name: set() for name in helpers}
    changed = bool(effects)
    while changed:  # helpers call each other: from nothing up to what changes no more
        changed = False
        for name, func in helpers.items():
            stored = _written(func, specs, effects)
            written = {
                index
                for index, var in enumerate(func.params)
                if var in func.buffer_map and id(func.buffer_map[var].data) in stored
            }
            changed = changed or written != effects[name]
            effects[name] = written
    stored = _written(host.func, specs, effects)
    params = list(compiled.params)
    for index, var in enumerate(host.func.params[: host.inputs]):
        buffer = host.func.buffer_map.get(var)
        if buffer is not None and id(buffer.data) not in stored:
            params[index] = replace(params[index], is_output=False)
    return tuple(params)


def _written(
    func: PrimFunc, specs: dict[str, FunctionSpec], effects: dict[str, set[int]]
) -> set[int]:
    """The data (by id) that a host or a helper writes, or lets others write."""
    written = {id(store.buffer.data) for store in collect(func.body, BufferStore)}
    for call in collect(func.body, TirCall):
        if not isinstance(call.op, GlobalVar):
            written |= {id(arg) for arg in call.args if isinstance(arg, TirVar)}
            continue
        known = effects.get(call.op.name_hint)
        params = specs[call.op.name_hint].params
        for index, (arg, param) in enumerate(zip(call.args, params, strict=False)):
            is_written = param.is_output is not False if known is None else index in known
            if isinstance(arg, Buffer) and is_written:
                written.add(id(arg.data))
    return written


def _symbols_of(func: PrimFunc, name: str) -> Symbols:
    """The names that the host's spec gives to symbolic variables."""
    signature = signature_of(func, name)
    symbols = Symbols()
    for var, text in zip(signature.implicit, signature.spec.implicit, strict=True):
        symbols.names[id(var)] = text
        symbols.vars[text] = var
    for param, described in zip(func.params, signature.spec.params, strict=True):
        if described.kind == "scalar":
            symbols.names[id(param)] = described.name
            symbols.vars[described.name] = param
    return symbols


def _layout(layout: Described, symbols: Symbols) -> Result:
    """A layout as plain data; see NativeEntry."""
    kind, content = layout
    if kind == "tuple":
        return ("tuple", tuple([_layout(item, symbols) for item in content]))
    return (kind, symbols.text(content) if kind == "same" else content)


def _check(check: ShapeCheck, symbols: Symbols) -> Result:
    """A check as plain data; see NativeEntry."""
    actual, resolved = symbols.extents(check.actual), symbols.extents(check.resolved)
    known = [(check.names.name(var), symbols.text(value)) for var, value in check.known.items()]
    wanted = check.names.extents(check.wanted)
    return check.kind, check.what, wanted, resolved, actual, tuple(known)


def _planned(host: HostFunction, symbols: Symbols) -> PlannedSizes | None:
    """What the runtime needs to place tensors whose sizes have symbols."""
    if host.plan.table is None:
        return None
    lives = host.plan.lives
    used = {symbols.name(var) for life in lives for var in symbolic_vars(life.size)}
    return PlannedSizes(
        tuple(sorted(used)),
        symbols.extents([life.size for life in lives]),
        tuple([(life.first, life.last) for life in lives]),
    )


def _result(result: Described, symbols: Symbols) -> Result:
    """A result as plain data; see NativeEntry."""
    kind, content = result
    if kind == "tuple":
        return ("tuple", tuple([_result(item, symbols) for item in content]))
    if kind == "shape":
        return ("shape", symbols.extents(content))
    if kind == "expr":
        return ("expr", symbols.text(content))
    return (kind, content)
