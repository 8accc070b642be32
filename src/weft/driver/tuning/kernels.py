"""The kernels of a model, each as a module of its own that can be compiled and measured alone.

They are taken out of the pipeline just before schedules: fused, with the layouts and algorithms of
the whole model. What follows (schedules, packing of weights) runs for each trial.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from weft.driver.insertions import SCHEDULING, name_of, with_insertions
from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.structural import structural_digest
from weft.ir.transform import Pass, Sequential
from weft.relax import op as ops
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Constant, Function, Var
from weft.relax.expr import Tuple as RelaxTuple
from weft.relax.op.base import CALL_TIR
from weft.support.errors import PassError, TVMError
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.size_hints import SIZE_HINTS, size_hints_of

MAIN: Final = "main"


@dataclass(frozen=True)
class Kernel:
    """A kernel or a layer of a model, and a module whose ``main`` calls it once.

    ``weights`` says for each parameter of ``main`` whether the model has a constant there; ``step``
    is the pass whose choices are searched, which is the first that the module needs.
    """

    name: str
    digest: bytes
    calls: int
    module: IRModule
    weights: tuple[bool, ...]
    step: str = SCHEDULING

    @property
    def sizes(self) -> dict[str, int]:
        """What symbols of the kernel usually are."""
        return size_hints_of(self.module)


class Stages(NamedTuple):
    """The pipeline ``weft`` in three parts: a pass that makes choices, what is before and after."""

    front: Pass
    step: Pass
    back: Pass


def stages(target: Target, name: str = SCHEDULING) -> Stages:
    """The pipeline around its first pass of this name. Raises PassError if it has no such pass."""
    passes = with_insertions(target)
    places = [number for number, step in enumerate(passes) if name_of(step) == name]
    if not places:
        raise PassError(f"expected a pass {name} in the pipeline for {target}, found none")
    front, back = passes[: places[0]], passes[places[0] + 1 :]
    return Stages(
        Sequential(front, name=f"before {name}"),
        passes[places[0]],
        Sequential(back, name=f"after {name}"),
    )


def kernels_of(module: IRModule) -> list[Kernel]:
    """The kernels of a module before schedules, those that default schedules will get.

    Two functions of the same structure are one kernel. A kernel whose call cannot stand alone, as
    its sizes come from elsewhere, is left out.
    """
    kernels: dict[bytes, Kernel] = {}
    for function in module.functions.values():
        for call in collect(function, Call) if isinstance(function, Function) else ():
            variable = call.args[0] if call.op is CALL_TIR else None
            callee = module[variable] if isinstance(variable, GlobalVar) else None
            if not isinstance(callee, PrimFunc) or callee.provenance != "te":
                continue
            assert isinstance(variable, GlobalVar)
            digest = structural_digest(callee)
            known = kernels.get(digest)
            if known is not None:
                kernels[digest] = replace(known, calls=known.calls + 1)
                continue
            sizes = size_hints_of(callee) or size_hints_of(module)
            kernel = _alone(call, variable.name_hint, callee, digest, sizes)
            if kernel is not None:
                kernels[digest] = kernel
    return list(kernels.values())


def _alone(
    call: Call, name: str, callee: PrimFunc, digest: bytes, sizes: Mapping[str, int]
) -> Kernel | None:
    """The kernel that a call runs; None if the call cannot be made alone."""
    given = call.args[1]
    if len(call.args) > 2 or not isinstance(given, RelaxTuple):
        return None
    arguments: Sequence[object] = given.fields
    parameters = [Var(f"x{i}", arg.struct_info) for i, arg in enumerate(given.fields)]
    builder = BlockBuilder(IRModule({name: callee}))
    try:
        with builder.function(MAIN, parameters):
            with builder.dataflow():
                variable = builder.get().get_global_var(name)
                alone = ops.call_tir(variable, parameters, call.sinfo_args[0])
                result = builder.emit_output(builder.emit(alone))
            builder.emit_func_output(result)
        module = builder.finalize()
    except TVMError:
        return None
    weights = tuple([isinstance(item, Constant) for item in arguments])
    hints = {str(key): int(size) for key, size in sizes.items()}
    return Kernel(name, digest, 1, module.with_attr(SIZE_HINTS, hints), weights)
