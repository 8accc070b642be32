"""The layers of a model whose algorithm a pass on graphs chooses, each as a module of its own.

A layer is a call of an operator, such as a convolution over blocks of channels. It is taken out of
the pipeline just before that pass; the pass and all that follow run for each trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from weft.dlight.decisions import Decisions, deciding
from weft.driver.insertions import name_of
from weft.driver.tuning.kernels import MAIN, Kernel
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import structural_digest
from weft.ir.transform import Pass
from weft.relax.analysis.bindings import get_var2val
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Constant, Function, Var
from weft.relax.transform import BindParams
from weft.runtime.ndarray import NDArray
from weft.support.errors import TVMError
from weft.tir.size_hints import SIZE_HINTS, size_hints_of

ALGORITHM_CHOICES: Final = ("UseWinograd",)
"""The passes on graphs whose choices are searched."""


class _Layer(NamedTuple):
    """A call of an operator on tensors, and those of them that are constants."""

    call: Call
    weights: Mapping[int, NDArray]


def layers_of(module: IRModule, step: Pass) -> list[Kernel]:
    """The calls of a module for which ``step`` has a choice.

    Calls of an operator with the same attributes and sizes are one layer.
    """
    hints = size_hints_of(module)
    layers: dict[bytes, Kernel] = {}
    for layer in _layers(module):
        alone = _alone(layer.call, hints)
        if alone is None:
            continue
        digest = structural_digest(alone)
        if digest in layers:
            layers[digest] = replace(layers[digest], calls=layers[digest].calls + 1)
        elif choices := _choices(layer, alone, step):
            name = choices[0].partition(" of ")[2]
            weights = tuple([place in layer.weights for place in range(len(layer.call.args))])
            layers[digest] = Kernel(name, digest, 1, alone, weights, name_of(step))
    return list(layers.values())


def _layers(module: IRModule) -> Iterator[_Layer]:
    """The calls of operators of which some arguments are constants, and all are tensors."""
    for function in module.functions.values():
        if not isinstance(function, Function) or "Primitive" in function.attrs:
            continue
        values = get_var2val(function)
        for call in collect(function, Call):
            given = [values.get(arg, arg) if isinstance(arg, Var) else arg for arg in call.args]
            weights = {i: arg.data for i, arg in enumerate(given) if isinstance(arg, Constant)}
            are_tensors = all(isinstance(arg, Var | Constant) for arg in call.args)
            if isinstance(call.op, Op) and weights and are_tensors:
                yield _Layer(call, weights)


def _alone(call: Call, hints: Mapping[str, int]) -> IRModule | None:
    """A module whose ``main`` makes the call once, of its parameters.

    None if that cannot stand alone, since sizes are computed from others.
    """
    parameters = [Var(f"x{place}", arg.struct_info) for place, arg in enumerate(call.args)]
    builder = BlockBuilder()
    try:
        with builder.function(MAIN, parameters):
            with builder.dataflow():
                again = Call(call.op, parameters, call.attrs, call.sinfo_args)
                result = builder.emit_output(builder.emit(again))
            builder.emit_func_output(result)
        return builder.finalize().with_attr(SIZE_HINTS, dict(hints))
    except TVMError:
        return None


def _choices(layer: _Layer, alone: IRModule, step: Pass) -> list[str]:
    """The names of the choices that the pass has for the call: ``algorithm of convolution ...``."""
    bound = {f"x{place}": weights for place, weights in layer.weights.items()}
    with deciding(Decisions()) as decisions:
        step(BindParams(MAIN, bound)(alone))
    return [*decisions.offered]
