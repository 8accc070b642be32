"""The tables of targets: kinds, options with their types, tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class TargetKind:
    """A family of targets. Code is generated for ``llvm``; the others can be named."""

    name: str
    default_keys: tuple[str, ...] = ()
    device_type: int = 1
    defaults: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.name

    @property
    def options(self) -> dict[str, str]:
        """The options and the names of their types."""
        return {name: OPTION_TYPES[name].__name__ for name in option_names(self.name)}


_GPU: Final = {"max_num_threads": 1024, "warp": 32}
KINDS: Final[dict[str, TargetKind]] = {
    kind.name: kind
    for kind in (
        TargetKind("llvm", ("cpu",)), TargetKind("c", ("cpu",)),
        TargetKind("cuda", ("cuda", "gpu"), 2, _GPU),
        TargetKind("nvptx", ("cuda", "gpu"), 2, _GPU),
        TargetKind("rocm", ("rocm", "gpu"), 10, {"max_num_threads": 256, "warp": 64}),
        TargetKind("opencl", ("opencl", "gpu"), 4, {"max_num_threads": 256, "warp": 1}),
        TargetKind("metal", ("metal", "gpu"), 8, {"max_num_threads": 256, "warp": 32}),
        TargetKind("vulkan", ("vulkan", "gpu"), 7, {"max_num_threads": 256, "warp": 1}),
        TargetKind("webgpu", ("webgpu", "gpu"), 15, {"max_num_threads": 256, "warp": 1}),
        TargetKind("hexagon", ("hexagon",), 16), TargetKind("ext_dev", ("ext_dev",), 12),
        TargetKind("hybrid", ("hybrid",)), TargetKind("composite", ("composite",)),
    )
}  # fmt: skip

OPTION_TYPES: Final[dict[str, type]] = {
    "mcpu": str, "mtriple": str, "mfloat-abi": str, "mabi": str, "device": str, "model": str,
    "arch": str, "runtime": str, "mattr": list, "libs": list, "cl-opt": list, "jit": str,
    "num-cores": int, "opt-level": int, "vector-width": int, "from_device": int,
    "max_num_threads": int, "thread_warp_size": int, "max_threads_per_block": int,
    "max_shared_memory_per_block": int, "registers_per_block": int, "l2_cache_size_bytes": int,
    "max_function_args": int, "fast-math": bool, "fast-math-nnan": bool, "fast-math-ninf": bool,
    "fast-math-nsz": bool, "fast-math-arcp": bool, "fast-math-contract": bool,
    "fast-math-reassoc": bool, "system-lib": bool, "link-params": bool, "interface-api": str,
    "unpacked-api": bool, "workspace-byte-alignment": int, "constants-byte-alignment": int,
    "fma-ports": int, "l1d-cache-bytes": int, "l2-cache-bytes": int, "l3-cache-bytes": int,
    "vtcm-capacity": int,
}  # fmt: skip

_CPU_ONLY: Final = (
    "mcpu mtriple mfloat-abi mabi device model runtime mattr libs cl-opt jit num-cores opt-level "
    "vector-width fast-math fast-math-nnan fast-math-ninf fast-math-nsz fast-math-arcp "
    "fast-math-contract fast-math-reassoc system-lib link-params interface-api unpacked-api "
    "workspace-byte-alignment constants-byte-alignment fma-ports l1d-cache-bytes l2-cache-bytes "
    "l3-cache-bytes"
).split()


def option_names(kind: str) -> list[str]:
    """The options that targets of a kind take."""
    return sorted(_CPU_ONLY if kind in ("llvm", "c") else OPTION_TYPES)


def _cuda(arch: str) -> dict[str, object]:
    return {
        "kind": "cuda",
        "keys": ["cuda", "gpu"],
        "arch": arch,
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }


TAGS: Final[dict[str, dict[str, object]]] = {
    "nvidia/nvidia-a100": _cuda("sm_80"), "nvidia/nvidia-h100": _cuda("sm_90"),
    "nvidia/nvidia-v100": _cuda("sm_70"), "nvidia/tesla-v100": _cuda("sm_70"),
    "nvidia/tesla-p100": _cuda("sm_60"), "nvidia/nvidia-t4": _cuda("sm_75"),
    "nvidia/geforce-rtx-2080": _cuda("sm_75"),
    "nvidia/geforce-rtx-2080-ti": _cuda("sm_75"), "nvidia/geforce-rtx-3070": _cuda("sm_86"),
    "nvidia/geforce-rtx-3080": _cuda("sm_86"), "nvidia/geforce-rtx-3090": _cuda("sm_86"),
    "nvidia/geforce-rtx-3090-ti": _cuda("sm_86"), "nvidia/geforce-rtx-4090": _cuda("sm_89"),
    "nvidia/geforce-gtx-1080-ti": _cuda("sm_61"), "nvidia/jetson-agx-xavier": _cuda("sm_72"),
    "nvidia/jetson-agx-orin-32gb": _cuda("sm_87"),
    "raspberry-pi/4b-aarch64": {
        "kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "mattr": ["+neon"],
        "num-cores": 4,
    },
    "apple/m1-gpu": {"kind": "metal", "max_threads_per_block": 1024, "thread_warp_size": 32},
    "apple/m2-gpu": {"kind": "metal", "max_threads_per_block": 1024, "thread_warp_size": 32},
}  # fmt: skip
"""Name of a machine -> the target it stands for."""
