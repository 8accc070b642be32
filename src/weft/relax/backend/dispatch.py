"""DispatchToLibraries: replaces operators by calls of the target's libraries.

``Target("llvm -libs=blas")`` names the libraries; without ``-libs`` (the default) the module does
not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.module import IRModule
from weft.ir.transform import Sequential, define_module_pass
from weft.relax.backend import blas
from weft.relax.transform.fusion.fuse_ops_by_pattern import FuseOpsByPattern, FusionPattern
from weft.relax.transform.fusion.run_codegen import RunCodegen
from weft.support.errors import PassError
from weft.target.target import Target

LIBRARIES: Final[Mapping[str, Sequence[FusionPattern]]] = {"blas": blas.PATTERNS}
"""Library -> the patterns of operators that it computes."""


def dispatch_to_libraries(mod: IRModule) -> IRModule:
    """The module with calls of the libraries that the target in scope names.

    Raises PassError for an unknown library.
    """
    target = Target.current(allow_none=True)
    names = [] if target is None else target.libs
    for name in names:
        if name not in LIBRARIES:
            raise PassError(
                f"target -libs: there is no library {name!r} for CPUs; there are "
                f"{', '.join(LIBRARIES)}"
            )
    patterns = [pattern for name in names for pattern in LIBRARIES[name]]
    if not patterns:
        return mod
    grouped = FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=True)
    return Sequential([grouped, RunCodegen()])(mod)


DispatchToLibraries = define_module_pass("DispatchToLibraries", dispatch_to_libraries)
