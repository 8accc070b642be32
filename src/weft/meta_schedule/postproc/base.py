"""What a postprocessor is: it finishes a schedule before it is built, or refuses it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.tir.schedule.schedule import Schedule

_MODULE: Final = "weft.meta_schedule.postproc.defaults"
_KINDS: Final = {
    "llvm": f"{_MODULE}:for_llvm",
    "c": f"{_MODULE}:for_llvm",
    **dict.fromkeys(("avx512", "vnni", "asimd", "dotprod"), f"{_MODULE}:for_cpu_intrinsics"),
    "cuda": f"{_MODULE}:for_cuda",
    "cuda-tensorcore": f"{_MODULE}:for_tensor_cores",
    "hexagon": f"{_MODULE}:for_hexagon",
}


class Postproc(Part):
    """Rewrites what rules have only annotated, or checks what the target demands."""

    @abstractmethod
    def apply(self, sch: Schedule) -> bool:
        """Change ``sch``; False if this schedule must not be built."""

    @staticmethod
    def create(kind: str) -> list[Postproc]:
        """The postprocessors that TVM uses for a kind of target, in their order.

        Args:
            kind: "llvm", "avx512", "vnni", "asimd", "dotprod", "c", "cuda", "cuda-tensorcore" or
                "hexagon".

        >>> [type(postproc).__name__ for postproc in Postproc.create("llvm")][-1]
        'RewriteLayout'
        """
        postprocs: list[Postproc] = class_of_kind(_KINDS, kind, "Postproc.create")()
        return postprocs


PyPostproc = Postproc
"""TVM's name of the class that users derive from."""
