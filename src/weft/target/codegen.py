"""Facts about LLVM, under the names of ``tvm.target.codegen``."""

from __future__ import annotations

from collections.abc import Sequence

from weft.support.errors import CodegenError
from weft.support.intrinsic_names import lookup_id, name_of
from weft.support.llvm_binding import binding
from weft.target.host import host_cpu, llvm_options, vector_bits
from weft.target.target import Target, as_target


def llvm_lookup_intrinsic_id(name: str) -> int:
    """A number for the name of an LLVM intrinsic, valid in this process; 0 if it is none."""
    return lookup_id(name)


def llvm_get_intrinsic_name(intrin_id: int) -> str:
    """The name of the intrinsic that has this number."""
    return name_of(int(intrin_id))


def llvm_version_major(allow_none: bool = False) -> int | None:
    """The major version of the LLVM that generates code."""
    try:
        return int(binding().llvm_version_info[0])
    except CodegenError:
        if allow_none:
            return None
        raise


def llvm_get_vector_width(target: Target | str | None = None) -> int:
    """The width of the target's vector registers in bits."""
    return vector_bits(_target(target))


def target_has_features(cpu_features: str | Sequence[str], target: Target | None = None) -> bool:
    """Whether the target has every one of these CPU features (LLVM's names).

    Known are this machine's features and those that the target's ``-mattr`` says.
    """
    wanted = [cpu_features] if isinstance(cpu_features, str) else list(cpu_features)
    options = llvm_options(_target(target))
    known = options.features.split(",")
    for name in wanted:
        plain = name.lstrip("+")
        if f"-{plain}" in known:
            return False
        if f"+{plain}" not in known:
            if options.cpu == host_cpu():
                return False
            raise CodegenError(
                f"whether {options.cpu} has {plain} is not known here: say it in the target, "
                f"-mattr=+{plain}"
            )
    return True


def _target(given: Target | str | None) -> Target:
    if given is None:
        current = Target.current(allow_none=True)
        return current if current is not None else Target("llvm")
    return as_target(given)
