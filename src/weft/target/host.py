"""What LLVM is told about a target: triple, processor, features, and the vector width to prefer."""

from __future__ import annotations

import difflib
import functools
import re
from typing import Any, Final, NamedTuple

from weft.backends.cpu.isa import system_of
from weft.support.errors import CodegenError, IRValueError
from weft.target.instruction_sets import instruction_sets
from weft.target.target import Target, as_target


class LLVMOptions(NamedTuple):
    """The arguments of LLVM's target machine, and the vector width in bits (0: LLVM's choice)."""

    triple: str
    cpu: str
    features: str
    opt_level: int
    vector_width: int


_X86_CPUS: Final = frozenset(
    "generic x86-64 x86-64-v2 x86-64-v3 x86-64-v4 core2 penryn nehalem corei7 westmere sandybridge "
    "corei7-avx ivybridge core-avx-i haswell core-avx2 broadwell skylake skylake-avx512 skx "
    "cascadelake cooperlake cannonlake icelake-client icelake-server rocketlake tigerlake "
    "sapphirerapids emeraldrapids graniterapids graniterapids-d alderlake raptorlake meteorlake "
    "arrowlake arrowlake-s lunarlake pantherlake gracemont sierraforest grandridge "
    "clearwaterforest silvermont goldmont goldmont-plus tremont knl knm k8 opteron athlon64 "
    "amdfam10 barcelona "
    "btver1 btver2 bdver1 bdver2 bdver3 bdver4 znver1 znver2 znver3 znver4 znver5 nocona "
    "diamondrapids novalake wildcatlake".split()
)
_OTHER_AVX512_CPUS: Final = frozenset(
    "cannonlake graniterapids graniterapids-d knl knm diamondrapids".split()
)
"""Those that ``PROCESSORS`` does not have."""
_ALWAYS: Final = frozenset(["64bit", "sse", "sse2"])
"""Features that x86-64's calls need: LLVM ends the process where they are off."""


@functools.cache
def _host() -> tuple[str, str, dict[str, bool]]:
    """Triple, processor and features of this machine."""
    try:
        import llvmlite.binding as llvm  # noqa: PLC0415 - loaded with the first code
    except ImportError as error:
        raise CodegenError("generating code needs llvmlite: pip install llvmlite") from error
    llvm.initialize_native_target()
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
        raise CodegenError(
            f"code generation for the target kind {target.kind.name!r} is not available; "
            "expected 'llvm'"
        )
    host_triple, host_name, features = _host()
    triple, cpu = target.mtriple or host_triple, target.mcpu
    is_host = cpu in ("", "native", host_name) and system_of(triple) == system_of(host_triple)
    if is_host:
        cpu = host_name
        text = ",".join([f"{'+' if on else '-'}{name}" for name, on in sorted(features.items())])
    else:
        cpu, text = cpu or "generic", ""
        _check_cpu(cpu, triple)
    extra = [_checked_feature(feature, triple) for feature in target.mattr]
    text = ",".join([part for part in (text, *extra) if part])
    level = int(target.attrs.get("opt-level", 3))
    if not 0 <= level <= 3:
        raise IRValueError(f"target option opt-level: expected 0 to 3, got {level}")
    return LLVMOptions(triple, cpu, text, level, _vector_width(target, cpu, text))


def _check_cpu(cpu: str, triple: str) -> None:
    if triple.startswith("x86_64") and cpu not in _X86_CPUS:
        nearest = difflib.get_close_matches(cpu, sorted(_X86_CPUS), n=3)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        raise IRValueError(f"target option mcpu: {cpu!r} is no x86-64 processor{hint}")


def _checked_feature(feature: str, triple: str) -> str:
    if not re.fullmatch(r"[+-][a-z0-9][a-z0-9._-]*", feature):
        raise IRValueError(
            f"target option mattr: expected features such as +avx2 or -avx512f, got {feature!r}"
        )
    if triple.startswith("x86_64") and feature[0] == "-" and feature[1:] in _ALWAYS:
        raise IRValueError(f"target option mattr: code for x86-64 needs {feature[1:]}")
    return feature


def _vector_width(target: Target, cpu: str, features: str) -> int:
    given = target.attrs.get("vector-width")
    if given is not None:
        return int(given)
    other = cpu in _OTHER_AVX512_CPUS and "-avx512f" not in features.split(",")
    return 512 if other or "avx512f" in instruction_sets(cpu, features) else 0


def llvm_options(target: Any = None) -> LLVMOptions:
    """What LLVM is told for ``target`` (None: this machine). Host features are detected."""
    return _options(as_target("llvm" if target is None else target))


def vector_bits(target: Any = None) -> int:
    """The width in bits of the vector registers that schedules for ``target`` should fill."""
    options = llvm_options(target)
    if options.vector_width:
        return options.vector_width
    if not options.triple.startswith("x86_64"):
        return 128
    return 256 if "avx2" in instruction_sets(options.cpu, options.features) else 128
