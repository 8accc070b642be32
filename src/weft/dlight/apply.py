"""ScheduleRule and ApplyDefaultSchedule: functions of a module get schedules without tuning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial

from weft.dlight.decisions import as_tuned
from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.pickling import Copied
from weft.ir.transform import ModulePass, Pass, PassContext, PassInfo
from weft.support.errors import PassError
from weft.support.events import happened, is_observed
from weft.support.parameters import mismatch
from weft.support.progress import awaited
from weft.support.public_entry import calls_of_callers
from weft.support.recursion import deep_recursion
from weft.support.shared_tasks import results
from weft.target.target import Target, target_meant
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.scheduled import SCHEDULED, is_scheduled


class ScheduleRule(ABC):
    """The base of rules: how functions of some form are scheduled."""

    @abstractmethod
    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """The schedule of ``func``; None if the rule is not for it.

        Blocks have the names that tensor expressions give them; ``weft.dlight.nest.blocks_of``
        lists them. Private functions have no ``global_symbol``. ``tunable`` is
        False, as no search calls the rule.
        """


def ApplyDefaultSchedule(*rules: ScheduleRule) -> Pass:  # noqa: N802 - TVM's name
    """A pass that schedules every PrimFunc by the first rule that fits.

    Those with ``tir.is_scheduled`` stay as they are. The target is the function's, else the current
    one, else this machine.
    """
    return _pass("ApplyDefaultSchedule", rules, lambda func: True)


def ScheduleGeneratedFunctions(*rules: ScheduleRule) -> Pass:  # noqa: N802 - a pass
    """As ``ApplyDefaultSchedule``, for functions that the compiler made from tensor expressions.

    Functions that a user wrote as loops stay as they are.
    """
    return _pass("ScheduleGeneratedFunctions", rules, lambda func: func.provenance == "te")


def _pass(name: str, rules: tuple[ScheduleRule, ...], wanted: Callable[[PrimFunc], bool]) -> Pass:
    for rule in rules:
        if not isinstance(rule, ScheduleRule):
            raise PassError(f"{name}: expected schedule rules, got {type(rule).__name__}")
        wrong = mismatch(rule.apply, ["func", "target", "tunable"])
        if wrong is not None:
            raise PassError(f"{name}: {type(rule).__name__}.apply: {wrong}")

    def run(mod: IRModule, _ctx: PassContext) -> IRModule:
        waiting = {
            gvar: func
            for gvar, func in mod.functions.items()
            if isinstance(func, PrimFunc) and wanted(func) and not is_scheduled(func)
        }
        scheduled_funcs = _scheduled_by_processes(waiting, rules)
        if not scheduled_funcs:
            return mod
        result = mod.clone()
        for gvar, func in scheduled_funcs.items():
            result.update_func(gvar, func)
        return result

    return ModulePass(deep_recursion(run), PassInfo(0, f"dlight.{name}"))


def _scheduled_by_processes(
    functions: Mapping[GlobalVar, PrimFunc], rules: tuple[ScheduleRule, ...]
) -> dict[GlobalVar, PrimFunc]:
    """Those functions that a rule fits, scheduled; forked processes share in the work.

    Not while somebody observes the compiler (``weft.support.events``): what a child decides cannot
    be seen.
    """

    def run(name: str, func: PrimFunc) -> Copied[PrimFunc | None]:
        return Copied(_scheduled(name, func, rules))

    tasks = [partial(run, gvar.name_hint, func) for gvar, func in functions.items()]
    with closing(results(tasks, most=0 if is_observed() else None)) as shared:
        answers = {place: copied.value for place, copied in awaited("schedules", shared)}
    places = enumerate(functions)
    return {gvar: func for place, gvar in places if (func := answers[place]) is not None}


def _scheduled(name: str, func: PrimFunc, rules: tuple[ScheduleRule, ...]) -> PrimFunc | None:
    happened("kernel", name, func)
    try:
        return scheduled(func, rules)
    except Exception as error:
        error.add_note(f"in function {name}")
        raise


def scheduled(func: PrimFunc, rules: Sequence[ScheduleRule]) -> PrimFunc | None:
    """The function, scheduled by the first rule that fits and marked; None if none fits."""
    schedule = first_schedule(func, rules, target_of(func))
    if schedule is None:
        return None
    functions = schedule.mod.functions.values()
    [new_func] = [item for item in functions if isinstance(item, PrimFunc)]
    return new_func.with_attr(SCHEDULED, 1)


def first_schedule(
    func: PrimFunc, rules: Sequence[ScheduleRule], target: Target
) -> Schedule | None:
    """What the first rule that fits makes of a function; None if none fits."""
    for rule in rules:
        with as_tuned(func):
            schedule = _applied(rule, func, target)
        happened("rule", type(rule).__name__, schedule)
        if schedule is not None:
            return schedule
    return None


@calls_of_callers
def _applied(rule: ScheduleRule, func: PrimFunc, target: Target) -> Schedule | None:
    try:
        answer: object = rule.apply(func, target, False)
    except Exception as error:
        error.add_note(f"in rule {type(rule).__name__}")
        raise
    if answer is None or isinstance(answer, Schedule):
        return answer
    raise PassError(
        f"{type(rule).__name__}.apply: expected a Schedule or None, got {type(answer).__name__}"
    )


def target_of(func: PrimFunc) -> Target:
    """The target of a function: its own, the current one, this machine."""
    own = func.attrs.get("target")
    return target_meant(own)
