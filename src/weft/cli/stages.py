"""The text of a model at each stage of its compilation, for ``weft show``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import weft
from weft.cli.models import Subject
from weft.driver.pipeline import get_pipeline, lower_tir
from weft.driver.sources import Request, import_model
from weft.ir.module import IRModule
from weft.ir.transform import Pass, Sequential
from weft.relax.expr import Function
from weft.relax.vm.lower import lower_functions
from weft.runtime.native.object_code import ObjectCode
from weft.support.errors import IRValueError
from weft.tir.function import PrimFunc
from weft.viz.disassembly import disassembled, kernel_of_symbol

MODULES: Final = ("imported", "legalized", "fused", "scheduled", "lowered", "host")
"""The stages that are modules."""
CODE: Final = {"llvm": "ll", "opt": "opt", "asm": "asm"}
"""The stages that are code -> its format, as ``get_source`` takes it."""
STAGES: Final = (*MODULES, *CODE)


def imported_module(subject: Subject) -> IRModule:
    """The module of a model as it is imported, before any pass."""
    if isinstance(subject.model, IRModule):
        return subject.model
    examples = subject.examples
    by_name = isinstance(examples, dict)
    args = () if examples is None or by_name else tuple(examples)
    request = Request(
        subject.model,
        args,
        dict(examples) if by_name else {},
        subject.dynamic_shapes,
        examples is not None,
    )
    return import_model(request).module


def stage_module(subject: Subject, stage: str, target: str) -> IRModule:
    """The module at a stage before code generation."""
    module = imported_module(subject)
    with weft.target.Target(target):
        passes = _passes_of(stage) if has_graph(module) else ()
        staged = Sequential(passes, name=stage)(module) if passes else module
        return _BEYOND[stage](staged) if stage in _BEYOND else staged


def has_graph(module: IRModule) -> bool:
    """Whether a module has functions of a graph; functions alone are built as they are written."""
    return any(isinstance(func, Function) for func in module.functions.values())


_LAST: Final = {"legalized": "LegalizeOps", "fused": "FuseTIR"}
"""Stage -> the pass after which it is shown; those behind it are shown after the last pass."""


def _passes_of(stage: str) -> Sequence[Pass]:
    if stage == "imported":
        return ()
    passes: Sequence[Pass] = get_pipeline("weft").passes
    names = [step.info.name for step in passes]
    return passes[: names.index(_LAST[stage]) + 1] if stage in _LAST else passes


def _lowered(module: IRModule) -> IRModule:
    """The kernels of a module as code generation takes them."""
    kernels = {var: func for var, func in module.functions.items() if isinstance(func, PrimFunc)}
    return lower_tir()(IRModule(kernels))


def _hosts(module: IRModule) -> IRModule:
    """The functions that call the kernels, as they are compiled beside these."""
    if not has_graph(module):
        raise IRValueError("there is no host function: the program has no graph, only functions")
    lowered = lower_functions(module)
    hosts = {host.symbol: host.func for host in lowered.hosts.values()}
    if not hosts:
        reasons = {name: func.why_not_native for name, func in lowered.program.functions.items()}
        raise IRValueError(
            "there is no host function: "
            + "; ".join([f"{name} runs as bytecode: {why}" for name, why in reasons.items()])
        )
    return IRModule(hosts)


_BEYOND: Final[Mapping[str, Callable[[IRModule], IRModule]]] = {
    "lowered": _lowered, "host": _hosts,
}  # fmt: skip
"""Stages after the passes on the graph."""


def stage_text(subject: Subject, stage: str, target: str, function: str | None) -> str:
    """The text of a stage: of one function, or of all if ``function`` is None.

    Raises IRValueError for an unknown function.
    """
    if stage in CODE:
        model: Any = subject.compile(target=target, cache=False)  # a cached one compiles again
        text = str(model.get_source(CODE[stage]))
        return text if function is None else native_function(text, stage, function)
    module = stage_module(subject, stage, target)
    if function is None:
        return str(module.script())
    names = [var.name_hint for var in module.functions]
    if function not in names:
        raise _unknown(function, names)
    return str(module[function].script())


_LLVM: Final = re.compile(r"^define [^\n]*@\"?([\w.$]+)\"?\(.*?^\}$", re.M | re.S)
_ASSEMBLY: Final = re.compile(r"^\"?([\w.$]+)\"?:.*?^\s*\.size\s+\"?\1\"?,[^\n]*$", re.M | re.S)


def native_function(text: str, stage: str, function: str) -> str:
    """The parts of LLVM IR or assembly that are a function: itself, and its parallel loops.

    ``function`` is the name of a kernel, or of a symbol in the text.
    """
    pattern = _ASSEMBLY if stage == "asm" else _LLVM
    parts = [(match[1], match.group()) for match in pattern.finditer(text)]
    chosen = [part for symbol, part in parts if function in (symbol, kernel_of_symbol(symbol))]
    if not chosen:
        raise _unknown(function, _unique(kernel_of_symbol(symbol) for symbol, _ in parts))
    return "\n\n".join(chosen)


def disassembly_text(code: ObjectCode, function: str | None) -> str:
    """The assembly of compiled code, or of one function with its parallel loops."""
    parts = disassembled(code)
    chosen = [
        text
        for symbol, text in parts.items()
        if function in (None, symbol, kernel_of_symbol(symbol))
    ]
    if not chosen:
        raise _unknown(str(function), _unique(kernel_of_symbol(symbol) for symbol in parts))
    return "\n\n".join(chosen)


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _unknown(function: str, names: Sequence[str]) -> IRValueError:
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return IRValueError(f"there is no function {function!r} at this stage; there are {shown}")
