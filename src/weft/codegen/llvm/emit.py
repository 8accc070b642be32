"""From an IRModule of lowered PrimFuncs to the text of one LLVM module.

Input: functions after the ``tir.transform`` pipeline, without blocks. Output: one LLVM function
each, by the convention of ``weft.runtime.call.abi``, and the FunctionSpecs for the checked
wrappers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.architecture import Architecture
from weft.backends.cpu.isa.features import first_offered, offers
from weft.codegen.llvm import parallel
from weft.codegen.llvm import stmt as statements
from weft.codegen.llvm.context import ModuleContext, native_text
from weft.codegen.llvm.debug_lines import DebugLines
from weft.codegen.llvm.decisive_loads import decisive_loads
from weft.codegen.llvm.emitter import Binding, Emitter, FunctionFacts, Tables
from weft.codegen.llvm.expr import EXPRESSIONS, if_then_else, index
from weft.codegen.llvm.imported import linked
from weft.codegen.llvm.register_tiles import is_best_in_order
from weft.codegen.llvm.signature import Signature, parameter_texts, signature_of
from weft.codegen.llvm.supported import is_supported
from weft.codegen.llvm.work import service_of
from weft.ir.module import IRModule
from weft.runtime.call.abi import FaultKind
from weft.runtime.call.spec import FunctionSpec
from weft.support.recursion import deep_recursion
from weft.target.features import required_features
from weft.target.host import LLVMOptions, llvm_options, vector_bits
from weft.target.target import Target, TargetLike, as_target
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.lowering.effects import DECLARED
from weft.tir.lowering.function_names import named_functions
from weft.tir.lowering.outline_launches import LAUNCHED, RANGES, OutlineLaunches
from weft.tir.lowering.pipeline import lower_meaning
from weft.tir.lowering.ranges import Interval
from weft.tir.lowering.symbols import symbol_ranges
from weft.tir.scheduled import is_scheduled

TABLES: Final = Tables(
    expressions=EXPRESSIONS, statements=statements.STATEMENTS, index=index,
    if_then_else=if_then_else,
)  # fmt: skip
_FLOAT_BITS: Final = frozenset({32, 64})
_METADATA: Final = (
    '!0 = !{!"branch_weights", i32 4000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 4000}'
)


SCHEDULED_BY_US: Final = "; weft has scheduled these loops\n"
"""A first line of a module in which LLVM need not look for vectors (compile.passes_for)."""
IN_ORDER: Final = "; sums stay in registers\n"
"""A first line of a module whose instructions LLVM leaves in their order (compile.job_of)."""


def prim_funcs(mod: IRModule) -> dict[str, PrimFunc]:
    """The PrimFuncs of a module by the name under which they are called."""
    functions = named_functions(mod)
    for name in functions:
        native_text(name)
    return functions


def lower_to_llvm(mod: IRModule, target: TargetLike | None = None, *, checks: bool = True) -> str:
    """The LLVM IR of every PrimFunc of ``mod``."""
    return emit_module(mod, target, checks=checks)[0]


@deep_recursion
def emit_module(
    mod: IRModule,
    target: TargetLike | None = None,
    *,
    checks: bool = True,
    debug: DebugLines | None = None,
) -> tuple[str, tuple[FunctionSpec, ...]]:
    """The LLVM IR of every PrimFunc of ``mod``, and how each is called.

    The text begins with ``IN_ORDER`` where that is so for one of them, and with
    ``SCHEDULED_BY_US`` where that holds for each.
    ``debug`` gives instructions the lines of statements (``weft.tir.printed_lines``).
    """
    machine = as_target("llvm" if target is None else target)
    options, bits, cores = llvm_options(target), vector_bits(machine), machine.num_cores or 0
    context = _context_of(machine, options, debug)
    mod = lower_meaning(lambda expr: is_supported(context, expr), checks)(mod)
    # Signatures say which arguments a function writes, which is read off its loops: so they are
    # read before the loops become launches, of which that is not known.
    signatures = {name: signature_of(func, name) for name, func in prim_funcs(mod).items()}
    context.signatures.update(signatures)
    registers = architecture_of(options.triple).vector_registers(bits)
    marks = _marks_of(prim_funcs(mod).values(), registers)
    functions = prim_funcs(OutlineLaunches(service_of(cores, bits))(mod))
    for name, func in functions.items():
        if LAUNCHED in func.attrs:
            emit_launched(context, func, name)
        elif DECLARED in func.attrs:
            declare_function(context, func, signatures[name])
        else:
            emit_function(context, func, name, signatures[name])
    text = marks + context.text(header_of(target)) + _METADATA + "\n"
    if context.imports:
        text = linked(text, context.imports, options)
    return text, _specs(functions, signatures)


def _marks_of(functions: Collection[PrimFunc], registers: int) -> str:
    """The first lines of a module, which say what LLVM is to do with it."""
    in_order = any(is_best_in_order(func, registers) for func in functions)
    is_ours = all(_is_scheduled_by_us(func) for func in functions)
    return (IN_ORDER if in_order else "") + (SCHEDULED_BY_US if is_ours else "")


def _context_of(machine: Target, options: LLVMOptions, debug: DebugLines | None) -> ModuleContext:
    """An empty module that knows what the target's processor can do."""
    isa, bits = architecture_of(options.triple), vector_bits(machine)
    features = set(required_features(options))
    is_rich = isa.rich is not None and offers(features, isa.rich)
    return ModuleContext(
        bool(machine.attrs.get("fast-math-contract", True)),
        num_cores=machine.num_cores or 0,
        vector_bits=bits,
        scales=is_rich,
        masked=is_rich,
        any_bits=is_rich,
        converts_half=isa.converts_half,
        rounds=isa.rounds,
        has_maximum=isa.has_maximum,
        fused_bits=_fused_bits(isa, features),
        looks_up=first_offered(features, isa.looks_up, 0),
        dots=_byte_dots(isa, bits, features),
        intrinsics=isa.intrinsics,
        debug=debug,
    )


def _byte_dots(isa: Architecture, bits: int, features: AbstractSet[str]) -> int:
    """The int32 in a register of the target, if an instruction adds dot products of bytes to it."""
    rows = isa.dot_products.get(bits, ())
    offered = {name for name, needed in rows if offers(features, needed)}
    return 0 if isa.byte_dots.isdisjoint(offered) else bits // 32


def _is_scheduled_by_us(func: PrimFunc) -> bool:
    """Whether the compiler wrote the loops and chose which of them become vectors."""
    return func.provenance == "host" or (func.provenance == "te" and is_scheduled(func))


def _fused_bits(isa: Architecture, features: set[str]) -> frozenset[int]:
    """The bits of the floats for which there is a multiply-add that rounds once."""
    has_instruction = isa.fuses is not None and offers(features, isa.fuses)
    return _FLOAT_BITS if has_instruction else isa.calls_to_fuse


def _specs(
    functions: Mapping[str, PrimFunc], signatures: Mapping[str, Signature]
) -> tuple[FunctionSpec, ...]:
    """How each function is called of which the module has the body."""
    launching = {str(func.attrs[LAUNCHED]) for func in functions.values() if LAUNCHED in func.attrs}
    return tuple(
        replace(signature.spec, launches=name in launching)
        for name, signature in signatures.items()
        if DECLARED not in functions[name].attrs
    )


def header_of(target: TargetLike | None) -> str:
    """The LLVM attributes of every function: no exceptions, the width of vectors to prefer."""
    width = llvm_options(target).vector_width
    wide = f' "prefer-vector-width"="{width}"' if width else ""
    return f"attributes #0 = {{ nounwind{wide} }}"


def emit_function(context: ModuleContext, func: PrimFunc, name: str, signature: Signature) -> None:
    """Append the text of a function that callers know to the module."""
    facts = FunctionFacts(name, signature.ret)
    em = Emitter(context, facts, TABLES)
    for position, param in enumerate(func.params):
        operand = f"%p{position}"
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            em.bind(buffer.data, Binding(operand))
        em.bind(param, Binding(operand))
    for position, (var, interval) in enumerate(symbol_ranges(func)):
        _bind_symbol(em, var, f"%s{position}", interval)
    em.decisive = decisive_loads(func.body)
    em.statement(func.body)
    params = ", ".join(parameter_texts(func, signature))
    context.functions.append(em.b.finish(f"define i32 {signature.operand}({params}) #0", name))


def declare_function(context: ModuleContext, func: PrimFunc, signature: Signature) -> None:
    """Declare a function that another object defines."""
    params = ", ".join([text.rpartition(" %")[0] for text in parameter_texts(func, signature)])
    context.declare(signature.spec.native_symbol, "i32", params)


def emit_launched(context: ModuleContext, func: PrimFunc, name: str) -> None:
    """Append the text of a function that a launch runs on a part of a parallel loop."""
    em = Emitter(context, FunctionFacts(str(func.attrs[LAUNCHED]), None), TABLES)
    ranges = func.attrs[RANGES]
    for position, (param, interval) in enumerate(zip(func.params, ranges, strict=True)):
        operand = f"%p{position}"
        wide = parallel.is_wide(param.dtype)
        em.bind(param, Binding(None, operand) if wide else Binding(operand))
        em.bind_range(param, (interval[0].value, interval[1].value))
    em.decisive = decisive_loads(func.body)
    em.statement(func.body)
    context.functions.append(em.b.finish(parallel.launched_header(func, name), em.function.name))


def _bind_symbol(em: Emitter, var: Var, operand: str, interval: Interval) -> None:
    """Bind a symbol that arrives as i64, such as ``n`` of an argument's shape.

    An extent is tested to be so small that sums of its type do not wrap.
    """
    em.bind(var, Binding(None, operand))
    em.bind_range(var, interval)
    if interval[0] < 0:  # a stride, which may be any number
        return
    limit = interval[1] + 1
    good = em.b.op(f"icmp ult i64 {operand}, {limit}")
    text = f"{em.function.name}: {var.name} is {{a}}, expected less than {{b}} for {var.dtype}"
    em.b.raise_unless(good, FaultKind.INDEX, text, operand, str(limit))


__all__ = ["emit_module", "lower_to_llvm", "prim_funcs"]
