"""The text of a model at each stage of its compilation, for ``weft show``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import weft
from weft.cli.models import Subject
from weft.driver.pipeline import get_pipeline
from weft.driver.sources import Request, import_model
from weft.ir.module import IRModule
from weft.ir.transform import Pass, Sequential
from weft.support.errors import IRValueError

STAGES: Final = ("imported", "legalized", "fused", "scheduled", "llvm", "asm")


def imported_module(subject: Subject) -> IRModule:
    """The module of a model as it is imported, before any pass."""
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
        passes = _passes_of(stage)
        return Sequential(passes, name=stage)(module) if passes else module


_LAST: Final = {"legalized": "LegalizeOps", "fused": "FuseTIR"}
"""Stage -> the pass after which it is shown; ``scheduled`` is shown after the last pass."""


def _passes_of(stage: str) -> Sequence[Pass]:
    if stage == "imported":
        return ()
    passes: Sequence[Pass] = get_pipeline("weft").passes
    names = [step.info.name for step in passes]
    return passes[: names.index(_LAST[stage]) + 1] if stage in _LAST else passes


def stage_text(subject: Subject, stage: str, target: str, function: str | None) -> str:
    """The text of a stage: of one function, or of all if ``function`` is None.

    Raises IRValueError for an unknown function.
    """
    if stage in ("llvm", "asm"):
        model = subject.compile(target=target, cache=False)  # a cached model would compile again
        text = model.get_source("ll" if stage == "llvm" else "asm")
        return text if function is None else _native_function(text, stage, function)
    module = stage_module(subject, stage, target)
    if function is None:
        return str(module.script())
    names = [var.name_hint for var in module.functions]
    if function not in names:
        raise _unknown(function, names)
    return str(module[function].script())


_NATIVE: Final[dict[str, Callable[[str], re.Pattern[str]]]] = {
    "llvm": lambda name: re.compile(rf"^define [^\n]*@\"?{name}\"?\(.*?^\}}$", re.M | re.S),
    "asm": lambda name: re.compile(
        rf"^\"?{name}\"?:.*?^\s*\.size\s+\"?{name}\"?,[^\n]*$", re.M | re.S
    ),
}
"""Stage -> a pattern for the part of the text that is the function ``name``."""


def _native_function(text: str, stage: str, function: str) -> str:
    match = _NATIVE[stage](re.escape(function)).search(text)
    if match is None:
        names = re.findall(
            r"^define [^\n]*@\"?([\w.$]+)\"?\("
            if stage == "llvm"
            else r"^\s*\.globl\s+\"?([\w.$]+)",
            text,
            re.M,
        )
        raise _unknown(function, names)
    return match.group()


def _unknown(function: str, names: Sequence[str]) -> IRValueError:
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return IRValueError(f"there is no function {function!r} at this stage; there are {shown}")
