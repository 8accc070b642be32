"""DispatchToLibraries: what the target's libraries compute becomes calls of them.

``Target("llvm -libs=blas")`` names libraries; without ``-libs``, which is the default, the module
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.module import IRModule
from weft.ir.transform import Pass, PassContext, Sequential
from weft.relax.backend import blas
from weft.relax.transform.fusion.fuse_ops_by_pattern import FuseOpsByPattern, FusionPattern
from weft.relax.transform.fusion.run_codegen import RunCodegen
from weft.relax.transform.passes import make_module_pass
from weft.support.errors import PassError
from weft.target.target import Target

LIBRARIES: Final[Mapping[str, Sequence[FusionPattern]]] = {"blas": blas.PATTERNS}
"""The patterns that each library takes."""


def dispatch_to_libraries(mod: IRModule) -> IRModule:
    """The module with calls of the libraries that the target in scope names.

    PassError for a library that there is not.
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
    result: IRModule = Sequential([grouped, RunCodegen()])(mod)
    return result


def DispatchToLibraries() -> Pass:  # noqa: N802 - as the other passes are named
    """The pass that sends to libraries what the target's ``-libs`` names, to ``blas`` products."""

    def run(mod: IRModule, _ctx: PassContext) -> IRModule:
        return dispatch_to_libraries(mod)

    return make_module_pass("DispatchToLibraries", run)
