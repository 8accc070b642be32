"""How kernels got their schedules: rules that fitted or did not, and the trace step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from weft.driver.recording import Attempt
from weft.ir.module import IRModule
from weft.support.errors import TVMError
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace
from weft.viz.texts import Texts

Row = dict[str, object]
_SUFFIX: Final = re.compile(r"(?:_(?:prepacked|weight_prepack|inplace)(?:_\d+)?)+$")
"""What passes after schedules append to a kernel's name."""


def schedule_row(attempts: Sequence[Attempt], texts: Texts) -> Row:
    """The schedule of a kernel, or of those that were merged to it; no rule: nothing scheduled it.

    Merged kernels have the steps of all, one after the other.
    """
    refused = dict.fromkeys([pair for attempt in attempts for pair in attempt.refused])
    rules = [rule_of(attempt) for attempt in attempts if attempt.rule is not None]
    start = texts.of(attempts[0].func, attempts[0].kernel) if attempts else None
    return {
        "rule": "; ".join(rules) or None,
        "refused": [{"rule": name, "reason": _brief(reason)} for name, reason in refused],
        "start": start,
        "steps": [row for attempt in attempts for row in _steps(attempt, texts)],
    }


def rule_of(attempt: Attempt) -> str:
    """The rule that scheduled a kernel, with its programs."""
    programs = ", ".join(dict.fromkeys(attempt.fitted))
    return f"{attempt.rule}: {programs}" if programs else str(attempt.rule)


def _brief(reason: str) -> str:
    """The first lines of an error's message, without the program that it shows."""
    lines = [line for line in reason.strip().split("\n") if line.strip()]
    return " ".join(lines[:2])[:300]


def _steps(attempt: Attempt, texts: Texts) -> list[Row]:
    """The trace of a schedule, replayed; each step with the program after it, if that changed.

    Where a schedule began anew, after steps that no text can name, the replay may stop: the steps
    that remain have no program.
    """
    schedule = attempt.schedule
    if schedule is None or schedule.trace is None:
        return []
    trace = schedule.trace.simplified(remove_postproc=False)
    lines = trace.as_python()
    rows: list[Row] = [{"text": line, "script": None} for line in lines]
    for row, func in zip(rows, _replayed(attempt.func, trace), strict=False):
        row["script"] = None if func is None else texts.of(func, attempt.kernel)
    return rows


def _replayed(func: PrimFunc, trace: Trace) -> Iterator[PrimFunc | None]:
    """The function after each step; None where a step changed nothing."""
    schedule = Schedule(func, debug_mask="none")
    before, known = func, dict[object, object]()
    for instruction in trace.insts:
        try:
            trace.play(instruction, schedule, known)
        except TVMError:
            return
        now = _only(schedule.mod)
        yield None if now is before else now
        before = now


def _only(module: IRModule) -> PrimFunc:
    (func,) = [item for item in module.functions.values() if isinstance(item, PrimFunc)]
    return func


def origins_of(kernel: str) -> list[str]:
    """The names that a kernel had when it was scheduled: several if it was merged of some.

    >>> origins_of("dense1_prepacked"), origins_of("dense1_and_relu1_inplace")
    (['dense1'], ['dense1', 'relu1'])
    """
    return [_SUFFIX.sub("", part) for part in kernel.split("_and_")]


def attempts_of(kernel: str, attempts: Sequence[Attempt]) -> list[Attempt]:
    """How the kernel of a name, or each that was merged to it, got its schedule."""
    by_name = {attempt.kernel: attempt for attempt in attempts}
    if kernel in by_name:
        return [by_name[kernel]]
    return [by_name[name] for name in origins_of(kernel) if name in by_name]
