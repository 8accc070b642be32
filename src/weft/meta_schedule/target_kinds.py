"""Which rules, postprocessors and mutators a target takes: kinds of targets, as TVM names them."""

from __future__ import annotations

from typing import Any, Final

from weft.backends.cpu.search_kinds import PLAIN, SEARCH_KINDS, SearchKind, search_kind_of
from weft.meta_schedule.kinds import place_of_kind
from weft.meta_schedule.target_facts import compute_capability
from weft.support.errors import IRValueError
from weft.target import Target

_CPUS: Final[dict[str, SearchKind]] = {
    **{kind.name: kind for kind in SEARCH_KINDS}, "c": PLAIN,
}  # fmt: skip
_OTHERS: Final = {
    "cuda": "for_gpu", "cuda-tensorcore": "for_tensor_cores", "hexagon": "for_hexagon",
}  # fmt: skip
_FUNCTIONS: Final = {**dict.fromkeys(_CPUS, "for_cpu"), **_OTHERS}
TARGET_KINDS: Final = tuple(_FUNCTIONS)
"""The kinds that ``ScheduleRule.create`` and its like know."""
_TENSOR_CORES: Final = 75
"""The compute capability from which on the rules use tensor cores."""


def parts_of_kind(package: str, kind: str, what: str) -> Any:
    """What ``package.defaults`` gives for a kind of target.

    Args:
        package: a package of ``weft.meta_schedule`` whose ``defaults`` has ``for_cpu`` (of a
            ``SearchKind``), ``for_gpu``, ``for_tensor_cores`` and ``for_hexagon``.
        kind: one of ``TARGET_KINDS``.
        what: what is made, for the message if the kind is another.
    """
    module = f"weft.meta_schedule.{package}.defaults"
    table = {name: f"{module}:{function}" for name, function in _FUNCTIONS.items()}
    parts = place_of_kind(table, kind, what)
    return parts(_CPUS[kind]) if kind in _CPUS else parts()


def rule_kind(target: Target) -> str:
    """The kind of a target, such as "llvm" or "cuda-tensorcore".

    >>> rule_kind(Target("llvm -mcpu=core2")), rule_kind(Target("cuda -arch=sm_70"))
    ('llvm', 'cuda')
    """
    name = target.kind.name
    if name == "llvm":
        return search_kind_of(target).name
    if name == "cuda":
        capability = compute_capability(target)
        has_tensor_cores = capability is not None and capability >= _TENSOR_CORES
        return "cuda-tensorcore" if has_tensor_cores else "cuda"
    if "gpu" in target.keys:
        return "cuda"
    if name in TARGET_KINDS:
        return name
    raise IRValueError(
        f"the target {target} has no design space of its own; give sch_rules, postprocs and "
        "mutator_probs, by themselves or by a kind such as 'llvm'"
    )
