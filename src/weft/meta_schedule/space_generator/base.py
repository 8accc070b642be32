"""What a space generator is: from a module, the schedules whose decisions a search varies."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self, TypeAlias, TypedDict

from weft.ir.module import IRModule
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.mutator.base import Mutator
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context, Part
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.target_kinds import rule_kind
from weft.tir.schedule.schedule import Schedule

ScheduleFnType: TypeAlias = Callable[[Schedule], object]
Rules: TypeAlias = Sequence[ScheduleRule] | str
Postprocs: TypeAlias = Sequence[Postproc] | str
Mutators: TypeAlias = Mapping[Mutator, float] | str
FROM_TARGET: Final = "from-target"
_FOLDER: Final = "weft.meta_schedule.space_generator"
_KINDS: Final = {
    "post-order-apply": f"{_FOLDER}.post_order_apply:PostOrderApply",
    "union": f"{_FOLDER}.space_generator_union:SpaceGeneratorUnion",
}
_FUNCTION: Final = {"function": f"{_FOLDER}.schedule_fn:ScheduleFn"}


class SpaceParts(TypedDict, total=False):
    """What generators take by name and hand to ``SpaceGenerator``, which says what it means."""

    sch_rules: Rules
    postprocs: Postprocs
    mutator_probs: Mutators


class SpaceGenerator(Part):
    """Gives the design space of a module, and what belongs to it: rules, postprocessors, mutators.

    Args:
        sch_rules: the rules, or a kind of target whose rules these are ("llvm", "cuda", ...);
            "from-target" takes those of the task's target when the generator learns its task.
        postprocs: the postprocessors, in the same forms.
        mutator_probs: the mutators with how often each is used, in the same forms.
    """

    sch_rules: list[ScheduleRule] | None = None
    postprocs: list[Postproc] | None = None
    mutator_probs: dict[Mutator, float] | None = None

    def __init__(
        self,
        sch_rules: Rules = FROM_TARGET,
        postprocs: Postprocs = FROM_TARGET,
        mutator_probs: Mutators = FROM_TARGET,
    ) -> None:
        self.sch_rules = _rules_of(sch_rules)
        self.postprocs = _postprocs_of(postprocs)
        self.mutator_probs = _mutators_of(mutator_probs)

    @staticmethod
    def create(
        kind: str | ScheduleFnType = "post-order-apply", *args: object, **kwargs: object
    ) -> SpaceGenerator:
        """A space generator by its kind.

        Args:
            kind: "post-order-apply" or "union"; a function that schedules stands for ScheduleFn of
                it without rules; a kind of target ("llvm") for PostOrderApply with its rules.
            args: arguments of the generator.
            kwargs: the same, by name.
        """
        if callable(kind):
            kwargs = {"sch_rules": (), "postprocs": (), "mutator_probs": {}, **kwargs}
            names = ("sch_rules", "postprocs", "mutator_probs")
            kwargs.update(zip(names, args, strict=False))
            return class_of_kind(SpaceGenerator, _FUNCTION, "function")(kind, **kwargs)
        if kind in _KINDS:
            return class_of_kind(SpaceGenerator, _KINDS, kind)(*args, **kwargs)
        return class_of_kind(SpaceGenerator, _KINDS, "post-order-apply")(
            sch_rules=kind, postprocs=kind, mutator_probs=kind
        )

    def _initialize_with_tune_context(self, context: Context) -> None:
        """Take what is missing from the target, and tell the parts their task."""
        missing = self.sch_rules is None or self.postprocs is None or self.mutator_probs is None
        if context.target is not None and missing:
            kind = rule_kind(context.target)
            if self.sch_rules is None:
                self.sch_rules = ScheduleRule.create(kind)
            if self.postprocs is None:
                self.postprocs = Postproc.create(kind)
            if self.mutator_probs is None:
                self.mutator_probs = Mutator.create(kind)
        for part in (
            *(self.sch_rules or ()), *(self.postprocs or ()), *(self.mutator_probs or ())
        ):  # fmt: skip
            part._initialize_with_tune_context(context)

    @abstractmethod
    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The schedules of the space, each with its trace."""

    def clone(self) -> Self:
        """A copy with copies of its parts, for another task."""
        twin = copy.copy(self)
        if self.sch_rules is not None:
            twin.sch_rules = [rule.clone() for rule in self.sch_rules]
        if self.postprocs is not None:
            twin.postprocs = [postproc.clone() for postproc in self.postprocs]
        if self.mutator_probs is not None:
            probs = self.mutator_probs
            twin.mutator_probs = {mutator.clone(): prob for mutator, prob in probs.items()}
        return twin


def _rules_of(given: Rules) -> list[ScheduleRule] | None:
    if isinstance(given, str):
        return None if given == FROM_TARGET else ScheduleRule.create(given)
    return list(given)


def _postprocs_of(given: Postprocs) -> list[Postproc] | None:
    if isinstance(given, str):
        return None if given == FROM_TARGET else Postproc.create(given)
    return list(given)


def _mutators_of(given: Mutators) -> dict[Mutator, float] | None:
    if isinstance(given, str):
        return None if given == FROM_TARGET else Mutator.create(given)
    return dict(given)


PySpaceGenerator = SpaceGenerator
"""TVM's name of the class that users derive from."""
