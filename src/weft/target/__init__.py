"""Targets: what code is generated for, written ``"llvm -mcpu=native -num-cores=2"``."""

from weft.target import codegen as codegen
from weft.target.hexagon_target import hexagon
from weft.target.host import LLVMOptions, host_cpu, host_features, llvm_options, vector_bits
from weft.target.kinds import KINDS, TAGS, TargetKind
from weft.target.target import Target, as_target

__all__ = [
    "KINDS", "TAGS", "LLVMOptions", "Target", "TargetKind", "as_target", "hexagon", "host_cpu",
    "host_features", "list_tags", "llvm_options", "vector_bits",
]  # fmt: skip


def list_tags() -> dict[str, Target]:
    """The known tags and their targets."""
    return {name: Target(name) for name in sorted(TAGS)}
