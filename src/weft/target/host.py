"""LLVM's options for a target: triple, processor, features, and the preferred vector width."""

from __future__ import annotations

import difflib
import functools
import re
from typing import NamedTuple

from weft.backends.cpu.isa import architecture_of, system_of
from weft.backends.cpu.isa.architecture import Architecture
from weft.backends.cpu.isa.features import first_offered, instruction_sets
from weft.support import slots
from weft.support.errors import IRValueError
from weft.support.llvm_binding import binding
from weft.target.target import Target, TargetLike, as_target


class LLVMOptions(NamedTuple):
    """The arguments of LLVM's target machine, and the vector width in bits (0: LLVM's choice)."""

    triple: str
    cpu: str
    features: str
    opt_level: int
    vector_width: int


@functools.cache
def _host() -> tuple[str, str, dict[str, bool]]:
    """Triple, processor and features of this machine."""
    llvm = binding()
    features = dict(llvm.get_host_cpu_features())
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def host_cpu() -> str:
    """LLVM's name of this machine's processor."""
    return _host()[1]


def host_features() -> dict[str, bool]:
    """LLVM's names of processor features, and whether this machine has them."""
    return dict(_host()[2])


@functools.lru_cache(maxsize=64)
def _options(target: Target) -> LLVMOptions:
    if target.kind.name != "llvm":
        options: LLVMOptions = slots.backend_of.get()(target).options(target)
        return options
    host_triple, host_name, features = _host()
    triple, cpu = target.mtriple or host_triple, target.mcpu
    architecture = architecture_of(triple)
    is_host = cpu in ("", "native", host_name) and system_of(triple) == system_of(host_triple)
    if is_host:
        cpu = host_name
        text = ",".join([f"{'+' if on else '-'}{name}" for name, on in sorted(features.items())])
    else:
        cpu, text = cpu or "generic", ""
        _check_cpu(cpu, architecture)
    extra = [_checked_feature(feature, architecture) for feature in target.mattr]
    text = ",".join([part for part in (text, *extra) if part])
    level = int(target.attrs.get("opt-level", 3))
    if not 0 <= level <= 3:
        raise IRValueError(f"target option opt-level: expected 0 to 3, got {level}")
    return LLVMOptions(triple, cpu, text, level, _vector_width(target, architecture, cpu, text))


def _check_cpu(cpu: str, architecture: Architecture) -> None:
    others = architecture.other_processors
    if others is None or cpu in architecture.processors or cpu in others:
        return
    nearest = difflib.get_close_matches(cpu, sorted({*architecture.processors, *others}), n=3)
    hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
    raise IRValueError(
        f"target option mcpu: {cpu!r} is no {_written(architecture)} processor{hint}"
    )


def _checked_feature(feature: str, architecture: Architecture) -> str:
    if not re.fullmatch(r"[+-][a-z0-9][a-z0-9._-]*", feature):
        raise IRValueError(
            f"target option mattr: expected features such as {_examples(architecture)}, got "
            f"{feature!r}"
        )
    if feature[0] == "-" and feature[1:] in architecture.always:
        raise IRValueError(
            f"target option mattr: code for {_written(architecture)} needs {feature[1:]}"
        )
    return feature


def _examples(architecture: Architecture) -> str:
    """Two features as the option writes them."""
    first, *_, last = architecture.kernel_features or ("feature", "feature")
    return f"+{first} or -{last}"


def _written(architecture: Architecture) -> str:
    """The name of an architecture as its vendors write it."""
    return architecture.name.replace("_", "-")


def _vector_width(target: Target, architecture: Architecture, cpu: str, features: str) -> int:
    given = target.attrs.get("vector-width")
    if given is not None:
        return int(given)
    bits = _widest_vector(architecture, cpu, features)
    return bits if bits == architecture.preferred else 0


def _widest_vector(architecture: Architecture, cpu: str, features: str) -> int:
    """The bits of the widest vector register."""
    present = set(instruction_sets(architecture, cpu, features))
    own = architecture.wide_processors.get(cpu)
    if own is not None and f"-{own}" not in features.split(","):
        present.add(own)
    return first_offered(present, architecture.vectors, 0)


def llvm_options(target: TargetLike | None = None) -> LLVMOptions:
    """LLVM's options for ``target`` (None: this machine). Host features are detected."""
    return _options(as_target("llvm" if target is None else target))


def vector_bits(target: TargetLike | None = None) -> int:
    """The width in bits of the vector registers that schedules for ``target`` should fill."""
    options = llvm_options(target)
    return options.vector_width or _widest_vector(
        architecture_of(options.triple), options.cpu, options.features
    )
