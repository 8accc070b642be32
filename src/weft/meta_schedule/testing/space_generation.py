"""For tests of rules: the sketches of a design space, compared with programs that are expected."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.meta_schedule.schedule_rule.base import ScheduleRule
from weft.meta_schedule.space_generator.post_order_apply import PostOrderApply
from weft.meta_schedule.tune_context import TuneContext
from weft.support.errors import IRValueError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.testing import verify_trace_roundtrip
from weft.tir.schedule.trace import Trace

Decisions = Sequence[tuple[str, object]]
Types = type | tuple[type, ...]


def get_rules(kind: str, types: Types) -> list[ScheduleRule]:
    """The default rules of a kind of target that are of the given classes."""
    return [rule for rule in ScheduleRule.create(kind) if isinstance(rule, types)]


def generate_design_space(
    kind: str,
    mod: IRModule | PrimFunc,
    target: Target | str,
    types: Types | None,
    sch_rules: Sequence[ScheduleRule] | None = None,
) -> list[Schedule]:
    """The sketches of a program under some rules.

    Args:
        kind: the kind of target whose default rules are used, such as "llvm".
        mod: the program.
        target: what it is for.
        types: the classes of the rules that are used; None if ``sch_rules`` are given.
        sch_rules: the rules themselves.
    """
    if (sch_rules is None) == (types is None):
        raise IRValueError("generate_design_space: expected either types or sch_rules")
    rules = list(sch_rules or ()) if types is None else get_rules(kind, types)
    generator = PostOrderApply(sch_rules=rules, postprocs=[], mutator_probs={})
    context = TuneContext(mod, target=target, space_generator=generator, task_name="test")
    return context.generate_design_space()


def check_sketches(
    mod: IRModule | PrimFunc,
    sketches: Sequence[Schedule],
    expected_mods: Sequence[IRModule | PrimFunc],
    expected_decisions: Sequence[Decisions],
    *,
    debug_mask: str | int = "all",
) -> None:
    """Raise AssertionError unless the sketches give the expected programs, one each.

    Args:
        mod: the program before scheduling.
        sketches: what a generator gave for it.
        expected_mods: the programs that the sketches should give, in any order.
        expected_decisions: for each of them the names of the sampling instructions in the order of
            the trace, with the decisions that lead to it.
        debug_mask: what each replay checks of the schedule's state.
    """
    if not len(sketches) == len(expected_mods) == len(expected_decisions):
        raise AssertionError(
            f"expected {len(expected_mods)} sketches with decisions for "
            f"{len(expected_decisions)}, got {len(sketches)}"
        )
    left = list(sketches)
    for number, (wanted, decisions) in enumerate(
        zip(expected_mods, expected_decisions, strict=True)
    ):
        module = wanted if isinstance(wanted, IRModule) else IRModule({"main": wanted})
        match = next(
            (item for item in left if _gives(mod, item, module, decisions, debug_mask)), None
        )
        if match is None:
            raise AssertionError(f"expected sketch #{number} is not among those generated")
        left.remove(match)


def _gives(
    mod: IRModule | PrimFunc,
    sketch: Schedule,
    wanted: IRModule,
    decisions: Decisions,
    debug_mask: str | int,
) -> bool:
    """Whether a sketch becomes a program under some decisions."""
    assert sketch.trace is not None
    samples = [inst for inst in sketch.trace.insts if inst.kind.name.startswith("Sample")]
    if [inst.kind.name for inst in samples] != [name for name, _ in decisions]:
        return False
    chosen = {inst: value for inst, (_, value) in zip(samples, decisions, strict=True)}
    sch = Schedule(mod, debug_mask=debug_mask)
    Trace(sketch.trace.insts, chosen).apply_to_schedule(sch, remove_postproc=True)
    if not structural_equal(_nameless(sch.mod), _nameless(wanted)):
        return False
    verify_trace_roundtrip(sch, mod, debug_mask=debug_mask, text_format="json")
    return True


def _nameless(mod: IRModule) -> IRModule:
    """The module without the global symbols of its functions."""
    functions = {
        var: func.without_attr("global_symbol") if isinstance(func, PrimFunc) else func
        for var, func in mod.functions.items()
    }
    return IRModule(functions)


def print_sketches(sketches: Sequence[Schedule]) -> None:
    """Print each sketch and its decisions."""
    for number, sch in enumerate(sketches):
        print(f"# sketch {number}")  # noqa: T201 - that is what it is for
        sch.mod.show()
        assert sch.trace is not None
        for inst, decision in sch.trace.decisions.items():
            print(f'("{inst.kind.name}", {decision}),')  # noqa: T201 - the same
