"""Which rules a target takes: the kind that ``ScheduleRule.create`` knows."""

from __future__ import annotations

from typing import Final

from weft.meta_schedule.target_facts import compute_capability
from weft.support.errors import CodegenError, IRValueError
from weft.target import Target
from weft.target.codegen import target_has_features

_X86: Final = (
    ("vnni", ("avx512vnni",)),
    ("vnni", ("avxvnni",)),
    ("avx512", ("avx512bw", "avx512f")),
)
_ARM: Final = (("dotprod", ("dotprod",)), ("asimd", ("neon",)))
"""Kind -> the features that it needs; the first whose features a processor has is its kind."""
_TENSOR_CORES: Final = 75
"""The compute capability from which on the rules use tensor cores."""


def rule_kind(target: Target) -> str:
    """The kind of a target, such as "llvm", "vnni" or "cuda-tensorcore".

    >>> rule_kind(Target("llvm -mcpu=core2")), rule_kind(Target("cuda -arch=sm_70"))
    ('llvm', 'cuda')
    """
    name = target.kind.name
    if name == "llvm":
        features = _ARM if target.mtriple.startswith(("aarch64", "arm")) else _X86
        for kind, needed in features:
            if _has(needed, target):
                return kind
        return "llvm"
    if name == "cuda":
        capability = compute_capability(target)
        has_tensor_cores = capability is not None and capability >= _TENSOR_CORES
        return "cuda-tensorcore" if has_tensor_cores else "cuda"
    if "gpu" in target.keys:
        return "cuda"
    if name in ("hexagon", "c"):
        return name
    raise IRValueError(
        f"the target {target} has no design space of its own; give sch_rules, postprocs and "
        "mutator_probs, by themselves or by a kind such as 'llvm'"
    )


def _has(features: tuple[str, ...], target: Target) -> bool:
    """Whether a target is known to have features."""
    try:
        return target_has_features(features, target)
    except CodegenError:  # a processor that is not this machine's, and no -mattr says it
        return False
