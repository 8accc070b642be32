"""Lowering of kernels again, pass by pass, so that each form of a kernel and its lines are known.

A kernel whose code came from the cache was not lowered when it was compiled; one that was is
lowered here to the same functions. Statements carry the line of the scheduled program on which they
stand (``weft.tir.printed_lines``), and the time of each pass is that of this run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.driver.pipeline import lower_tir
from weft.driver.recording import State
from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import Pass, PassContext
from weft.script.printed import Printed
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.printed_lines import fill_lines


@dataclass
class Lowering:
    """The kernels before the first pass and after each, and the seconds of each pass."""

    scheduled: dict[str, Printed] = field(default_factory=dict)
    states: list[State] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def lowered(self) -> dict[str, PrimFunc]:
        """The kernels after the last pass."""
        return {var.name_hint: expect(func, PrimFunc) for var, func in self.states[-1]}


def lower_again(kernels: Mapping[str, PrimFunc], target: Target, context: PassContext) -> Lowering:
    """Lower each kernel by itself, as code generation does."""
    with target:
        steps = [step for step in lower_tir().passes if context.pass_enabled(step.info)]
    result = Lowering(passes=[step.info.name for step in steps], seconds=[0.0] * len(steps))
    states: list[list[tuple[GlobalVar, BaseFunc]]] = [[] for _ in range(len(steps) + 1)]
    plain = PassContext(context.opt_level, config=context.config)
    for name, func in kernels.items():
        printed = result.scheduled[name] = Printed.of(func, name)
        with target, plain:
            for at, module in enumerate(_forms(name, printed.marked(), steps, result.seconds)):
                states[at] += module.functions.items()
    result.states = [tuple(state) for state in states]
    return result


def _forms(name: str, func: PrimFunc, steps: list[Pass], seconds: list[float]) -> list[IRModule]:
    """A kernel before the first pass and after each; adds to the seconds of each."""
    named = func if "global_symbol" in func.attrs else func.with_attr("global_symbol", name)
    module = IRModule({name: named})
    forms = [module]
    for at, step in enumerate(steps):
        begin = time.perf_counter()
        module = step(module)
        seconds[at] += time.perf_counter() - begin
        for changed in module.functions.values():
            if isinstance(changed, PrimFunc):
                fill_lines(changed.body, 1)
        forms.append(module)
    return forms
