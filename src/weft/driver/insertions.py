"""Passes and schedule rules that users and plug-ins put into the pipeline ``weft``.

``weft.driver.pipeline.insert`` and ``remove`` are the public names. An insertion is part of the key
of cached models, by the sources of its package and by its options.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final, TypeVar

from weft.codegen.backend import backend_of
from weft.dlight.apply import ScheduleGeneratedFunctions, ScheduleRule
from weft.driver.step_keys import key_of_step
from weft.ir.transform import Pass
from weft.support import plugins
from weft.support.errors import PassError
from weft.support.parameters import mismatch
from weft.target.target import Target, target_meant

Step = TypeVar("Step", Pass, ScheduleRule)


@dataclass(frozen=True)
class Insertion:
    """A pass or a rule, and the name of the step before or after which it is inserted."""

    step: Pass | ScheduleRule
    neighbour: str
    is_after: bool


_INSERTIONS: Final[list[Insertion]] = []
SCHEDULING: Final = ScheduleGeneratedFunctions().info.name
"""The name of the pass that applies the schedule rules."""


def insert(
    *, pass_: Pass | ScheduleRule | str, before: str | None = None, after: str | None = None
) -> Pass | ScheduleRule:
    """Put a pass or a rule of default schedules into the pipeline ``weft`` of this process.

    Args:
        pass_: a pass, a ``dlight.ScheduleRule``, or the name of either in the entry-point group
            ``weft.passes`` of an installed package.
        before: the name of a pass (``step.info.name``) or of a rule (its class), such as
            ``"FuseTIR"`` or ``"Default"``. Of several passes of that name it is the first.
        after: the same, on its other side; of several passes of that name it is the last.

    Returns:
        The pass or the rule, for ``remove``. A rule beside a pass schedules functions there; one
        beside a rule joins the rules, of which the first that fits a function counts.

    >>> from weft import ir, relax
    >>> from weft.driver import pipeline
    >>> step = pipeline.insert(after="FuseTIR", pass_=ir.transform.PrintIR("after fusion"))
    >>> names = [step.info.name for step in relax.get_pipeline("weft").passes]
    >>> names[names.index("FuseTIR") + 1]
    'PrintIR'
    >>> pipeline.remove(step)
    """
    if (before is None) == (after is None):
        raise PassError("insert: expected one of before= and after=, the name of a step")
    step = _from_plugin(pass_) if isinstance(pass_, str) else pass_
    if not isinstance(step, Pass | ScheduleRule):
        raise PassError(f"insert: expected a pass or a ScheduleRule, got {_described(step)}")
    insertion = Insertion(step, before or after or "", after is not None)
    with_insertions(target_meant(), [*_INSERTIONS, insertion])  # raises if it has no place
    _INSERTIONS.append(insertion)
    return step


def remove(pass_: Pass | ScheduleRule | str) -> None:
    """Remove an insertion, given the object that ``insert`` returned, or its name."""
    for at in reversed(range(len(_INSERTIONS))):
        step = _INSERTIONS[at].step
        if step is pass_ or (isinstance(pass_, str) and name_of(step) == pass_):
            del _INSERTIONS[at]
            return
    inserted = ", ".join([name_of(item.step) for item in _INSERTIONS]) or "nothing"
    name = pass_ if isinstance(pass_, str) else name_of(pass_)
    raise PassError(f"remove: {name} is not in the pipeline; inserted: {inserted}")


def _from_plugin(name: str) -> object:
    maker = plugins.named(plugins.PASSES, name)
    if maker is None:
        known = ", ".join(plugins.names(plugins.PASSES)) or "none"
        raise PassError(
            f"insert: no installed package has a pass {name!r} in its entry points "
            f"{plugins.PASSES}; there are: {known}. Give a pass of this program, or of weft, as "
            "an object: pass_=relax.transform.FoldConstant()"
        )
    if isinstance(maker, Pass | ScheduleRule):
        return maker
    if not callable(maker):
        raise plugins.PluginError(
            f"{plugins.PASSES}: {name!r} is {_described(maker)}; expected a pass, a ScheduleRule, "
            "or a function that gives one"
        )
    wrong = mismatch(maker, ())
    step = None if wrong else maker()
    if not isinstance(step, Pass | ScheduleRule):
        raise plugins.PluginError(
            f"{plugins.PASSES}: {name!r}: expected what gives a pass or a ScheduleRule, when it is "
            f"called without arguments; {wrong or f'got {_described(step)}'}"
        )
    return step


def _described(value: object) -> str:
    """What stands where a pass or a rule is expected, and what may have been meant."""
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}; name a pass of it: '{value.__name__}:name'"
    if isinstance(value, type):
        return f"the class {value.__name__}; make an object of it: {value.__name__}()"
    if inspect.isfunction(value):
        name = value.__name__
        return f"the function {name}; call it if it gives a pass: {name}()"
    return type(value).__name__


def name_of(step: Pass | ScheduleRule) -> str:
    """The name of a pass or rule, as ``insert`` takes it."""
    return step.info.name if isinstance(step, Pass) else type(step).__name__


def with_insertions(
    target: Target, insertions: Sequence[Insertion] = _INSERTIONS
) -> tuple[Pass, ...]:
    """The passes of the pipeline ``weft`` for a target, with the insertions."""
    backend = backend_of(target)
    passes, rules = list(backend.graph(target)), list(backend.schedules(target))
    inserted: dict[int, Insertion] = {}
    for item in insertions:
        if any(name_of(rule) == item.neighbour for rule in rules):
            if not isinstance(item.step, ScheduleRule):
                raise PassError(
                    f"insert: {item.neighbour} is a schedule rule: expected a ScheduleRule beside "
                    f"it, got the pass {name_of(item.step)}; the pass that applies the rules is "
                    f"{SCHEDULING!r}"
                )
            _place(rules, item.step, item, inserted)
        else:
            step = item.step
            as_pass = step if isinstance(step, Pass) else ScheduleGeneratedFunctions(step)
            _place(passes, as_pass, item, inserted, [name_of(rule) for rule in rules])
    if not any(id(rule) in inserted for rule in rules):
        return tuple(passes)
    return tuple(
        [
            step
            if id(step) in inserted or name_of(step) != SCHEDULING
            else ScheduleGeneratedFunctions(*rules)
            for step in passes
        ]
    )


def with_own_rules(target: Target, rules: Sequence[ScheduleRule]) -> tuple[Pass, ...]:
    """The passes of the pipeline ``weft`` with insertions, where ``rules`` are asked first."""
    defaults = backend_of(target).schedules(target)
    if not rules or not defaults:
        return with_insertions(target)
    own = [Insertion(rule, name_of(defaults[0]), False) for rule in rules]
    return with_insertions(target, [*own, *_INSERTIONS])


def checked_rules(rules: object) -> tuple[ScheduleRule, ...]:
    """The rules that ``weft.compile`` was given; PassError for what is none."""
    given = tuple(rules) if isinstance(rules, Sequence) else (rules,)
    for rule in given:
        if not isinstance(rule, ScheduleRule):
            raise PassError(
                f"compile: rules=: expected a list of ScheduleRules, got {_described(rule)}"
            )
    return given


def _place(
    steps: list[Step],
    step: Step,
    item: Insertion,
    inserted: dict[int, Insertion],
    rules: Sequence[str] = (),
) -> None:
    """Insert a step beside its neighbour; steps after the same neighbour keep their order."""
    places = [at for at, other in enumerate(steps) if name_of(other) == item.neighbour]
    if not places:
        known = ", ".join(dict.fromkeys([name_of(other) for other in steps]))
        nearest = difflib.get_close_matches(item.neighbour, [*map(name_of, steps), *rules], n=1)
        hint = f"did you mean {nearest[0]!r}? " if nearest else ""
        raise PassError(
            f"insert: the pipeline has no step {item.neighbour!r}; {hint}there are: {known}; "
            f"and the schedule rules {', '.join(rules)}"
        )
    at = places[-1] + 1 if item.is_after else places[0]
    while item.is_after and at < len(steps) and _is_beside(inserted.get(id(steps[at])), item):
        at += 1
    steps.insert(at, step)
    inserted[id(step)] = item


def _is_beside(earlier: Insertion | None, item: Insertion) -> bool:
    return earlier is not None and earlier.is_after and earlier.neighbour == item.neighbour


def key() -> bytes | None:
    """Bytes that identify all insertions, for keys of caches; None if one cannot be identified."""
    keys = [key_of_step(item.step) for item in _INSERTIONS]
    if None in keys:
        return None
    places = [(item.neighbour, item.is_after) for item in _INSERTIONS]
    return repr((keys, places)).encode() if keys else b""
