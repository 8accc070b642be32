"""The layers of a function that can multiply small integers: convolutions and products of weights.

A layer is a call whose second operand is a constant. ``layers_of`` looks at the bindings of the
function itself and not at those of branches, which may not run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import Call, Constant, Function
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.struct_info import dtype_of

MATMUL: Final = Op.get("relax.matmul")
_CONVOLUTIONS: Final = "relax.nn.conv"
"""How the names of all convolutions begin."""


@dataclass(frozen=True)
class Layer:
    """A call that multiplies an activation with constant weights."""

    name: str
    """The operator's name and the layer's number among the layers of this operator: conv2d_0."""
    call: Call
    weights: np.ndarray
    """float32: ``[filters, channels, height, width]``, or ``[inputs, outputs]`` of a product."""
    weight_axis: int
    """The axis of ``weights`` that counts the channels of the result."""
    result_axis: int
    """The axis of the result that counts its channels."""

    @property
    def kind(self) -> str:
        """The operator's name: ``conv2d`` or ``matmul``."""
        return kind_of(self.call)

    @property
    def summed_axis(self) -> int:
        """The axis of ``weights`` that counts the channels of the activation."""
        return 1 - self.weight_axis

    @property
    def channels(self) -> int:
        """How many channels the result has."""
        return int(self.weights.shape[self.weight_axis])


@dataclass(frozen=True)
class Unsuitable:
    """A layer that stays in float32 whatever its numbers are, with the reason."""

    name: str
    call: Call
    reason: str


def kind_of(call: Call) -> str:
    """The name of an operator without its folders: ``conv2d``."""
    name: str = call.op.name
    return name.rpartition(".")[2]


def layers_of(func: Function) -> tuple[list[Layer], list[Unsuitable]]:
    """The layers that can multiply integers, and those that cannot, both in program order."""
    layers: list[Layer] = []
    unsuitable: list[Unsuitable] = []
    numbers: dict[str, int] = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, Call) or not _is_product(call):
                continue
            number = numbers[kind_of(call)] = numbers.get(kind_of(call), -1) + 1
            name, reason = f"{kind_of(call)}_{number}", _reason_against(call)
            if reason is None:
                axes = (0, 1) if call.op is IMAGE_CONVOLUTION else (1, -1)
                weights = expect(call.args[1], Constant).data.numpy()
                layers.append(Layer(name, call, weights, *axes))
            else:
                unsuitable.append(Unsuitable(name, call, reason))
    return layers, unsuitable


def _is_product(call: Call) -> bool:
    return isinstance(call.op, Op) and (call.op is MATMUL or call.op.name.startswith(_CONVOLUTIONS))


def _reason_against(call: Call) -> str | None:
    """Why a convolution or a product cannot multiply integers; None if it can."""
    image, weights = call.args
    if not isinstance(weights, Constant):
        return "its second operand is no constant"
    if isinstance(image, Constant):
        return "it depends on constants only"
    if {dtype_of(expr) for expr in (image, weights, call)} != {"float32"}:
        return "it is not in float32"
    if call.op is MATMUL:
        return None if weights.struct_info.ndim == 2 else "its weights are no matrix"
    geometry = geometry_of(call) if call.op is IMAGE_CONVOLUTION else None
    if geometry is None or geometry.layouts.names != ("NCHW", "OIHW", "NCHW"):
        return "it is no convolution of images in the layout NCHW"
    return None if geometry.is_dense else "its channels are in groups"
