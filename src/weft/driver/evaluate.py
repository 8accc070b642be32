"""Compiles and runs one PrimFunc at build time, for FoldConstant (the slot ``evaluate``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.codegen.backend import backend_of
from weft.driver.build import build
from weft.ir.expr import IntImm
from weft.runtime.native.object_code import ObjectCode, obstacle_of
from weft.runtime.ndarray import NDArray, empty
from weft.support import slots
from weft.support.errors import IRValueError
from weft.support.events import observing
from weft.target.features import required_features
from weft.target.target import Target, target_meant
from weft.tir.function import PrimFunc


def evaluate(func: PrimFunc, inputs: Sequence[NDArray]) -> list[NDArray]:
    """Compile ``func``, run it on ``inputs``, and return its outputs, the buffers after the inputs.

    Raises IRValueError if the extents of an output are not constants.
    """
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    outputs = []
    for buffer in buffers[len(inputs) :]:
        extents = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
        if len(extents) != len(buffer.shape):
            raise IRValueError(f"evaluate: the extents of {buffer.name} are not constants")
        outputs.append(empty(tuple(extents), str(buffer.dtype)))
    with observing(None):  # the code that folds a constant is no part of the model
        run = build(func.with_attr("global_symbol", "folded"), _target_here())
    run["folded"](*inputs, *outputs)
    return outputs


def compiled(func: PrimFunc) -> Callable[..., object]:
    """Compile ``func``: the result takes all its arguments, and writes its outputs in place."""
    with observing(None):
        run = build(func.with_attr("global_symbol", "compiled"), _target_here())
    return run["compiled"]


def _target_here() -> Target:
    """The target in scope; this machine's CPU if this machine cannot run code for that target."""
    target = target_meant()
    options = backend_of(target).options(target)
    code = ObjectCode(b"", (), options.triple, options.cpu, required_features(options))
    return Target("llvm") if obstacle_of(code) else target


class _Evaluate:
    """What fills the slot: calling it is ``evaluate``; it also has ``compiled``."""

    __call__ = staticmethod(evaluate)
    compiled = staticmethod(compiled)


slots.evaluate.fill(_Evaluate())
