"""Rewrites layers of a function so that they multiply integers.

With a coding that was measured before, a layer ``conv2d(x, w)`` becomes::

    q = astype(clip(round(x * (1 / s) + z), 0, 255), "uint8")
    conv2d((q - z) * s, w_int8 * w_scales) + correction

which DequantizeAfterProduct turns into a convolution of integers. ``q`` is shared by all layers
that read ``x``. Without a coding, the range of ``x`` is taken in each call (``matmul`` only).

``correction`` is what the layer's result is too small by, on average over samples, in each channel
(Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Call, Expr, Function, SeqExpr, Tuple, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.transform.quantize.fold_steps import fold_steps
from weft.relax.transform.quantize.layers import Layer
from weft.relax.transform.quantize.numbers import STEPS, Coding, quantized_weights


@dataclass(frozen=True)
class Plan:
    """What a layer becomes."""

    layer: Layer
    coding: Coding | None
    """The coding of its activation; None: it is chosen in each call."""
    correction: np.ndarray | None = None
    """What is added to each channel of the result."""
    in_pairs: bool = False
    """Whether int16 shall hold the products of bytes and weights in pairs."""


class _Inserter(PyExprMutator):
    def __init__(self, plans: Sequence[Plan]) -> None:
        super().__init__()
        self.plans: Mapping[int, Plan] = {id(plan.layer.call): plan for plan in plans}
        self.coded: dict[tuple[RelaxExpr, Coding | None], tuple[Expr, Expr, Expr]] = {}
        """An activation and its coding -> its bytes, their zero point in int32, their scale."""

    def visit_call_(self, call: Call) -> RelaxExpr:
        """A layer with a plan in integers, any other call as it is."""
        plan, rewritten = self.plans.get(id(call)), super().visit_call_(call)
        return rewritten if plan is None else self.product(plan, expect(rewritten, Call).args[0])

    def product(self, plan: Plan, activation: Expr) -> Expr:
        """The layer's result, computed in integers."""
        emit, layer = self.builder_.emit, plan.layer
        numbers, zero, scale = self.integers(activation, plan.coding)
        centred = emit(op.subtract(emit(op.astype(numbers, "int32")), zero))
        real = emit(op.multiply(emit(op.astype(centred, "float32")), scale))
        pair_axis = layer.summed_axis if plan.in_pairs else None
        weights, factors = quantized_weights(layer.weights, layer.weight_axis, pair_axis)
        if layer.call.op is IMAGE_CONVOLUTION:
            factors = factors.reshape(-1, 1, 1, 1)
        known = emit(op.multiply(emit(op.astype(const(weights), "float32")), const(factors)))
        result = Call(layer.call.op, [real, known], layer.call.attrs, layer.call.sinfo_args)
        if plan.correction is None:
            return result
        added = plan.correction.astype("float32")
        if layer.call.op is IMAGE_CONVOLUTION:
            added = added.reshape(1, -1, 1, 1)
        return op.add(emit(result), const(added))

    def integers(self, activation: Expr, coding: Coding | None) -> tuple[Expr, Expr, Expr]:
        """The bytes of an activation, their zero point in int32, and their scale."""
        key = activation, coding
        if key not in self.coded:
            inverse, zero, scale = self.numbers(activation, coding)
            emit = self.builder_.emit
            steps = emit(op.multiply(activation, inverse))
            if coding is None:
                steps = emit(op.add(steps, emit(op.astype(zero, "float32"))))
            elif coding.zero_point:
                steps = emit(op.add(steps, const(float(coding.zero_point), "float32")))
            moved = emit(op.clip(emit(op.round(steps)), 0, STEPS))
            whole = emit(op.astype(emit(op.astype(moved, "int32")), "uint8"))
            self.coded[key] = whole, zero, scale
        return self.coded[key]

    def numbers(self, activation: Expr, coding: Coding | None) -> tuple[Expr, Expr, Expr]:
        """The inverse of the scale, the zero point and the scale of an activation."""
        if coding is not None:
            step, start = np.float32(coding.scale), np.array(coding.zero_point, "int32")
            return const(np.float32(1) / step, "float32"), const(start), const(step, "float32")
        emit, none = self.builder_.emit, const(0.0, "float32")
        least = emit(op.minimum(emit(op.min(activation)), none))
        greatest = emit(op.maximum(emit(op.max(activation)), none))
        width = emit(op.subtract(greatest, least))
        is_wide = emit(op.greater(width, none))
        steps = const(float(STEPS), "float32")
        whole = emit(op.where(is_wide, width, steps))
        scale, inverse = emit(op.divide(whole, steps)), emit(op.divide(steps, whole))
        point = emit(op.round(emit(op.multiply(emit(op.negative(least)), inverse))))
        # As a byte, so that the compiler knows its range.
        zero = emit(op.astype(emit(op.astype(point, "int32")), "uint8"))
        return inverse, emit(op.astype(zero, "int32")), scale


def insert_integers(func: Function, plans: Sequence[Plan]) -> Function:
    """The function, whose planned layers multiply integers."""
    return fold_steps(_Inserter(plans).visit_expr(func))


class _Measurer(_Inserter):
    """Computes layers both ways and goes on with the floats."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        super().__init__(plans)
        self.means: dict[int, list[Expr]] = {}

    def visit_call_(self, call: Call) -> RelaxExpr:
        """Any call as it is; beside a layer, its means."""
        plan, rewritten = self.plans.get(id(call)), PyExprMutator.visit_call_(self, call)
        if plan is None:
            return rewritten
        emit = self.builder_.emit
        exact = emit(rewritten)
        activation = expect(rewritten, Call).args[0]
        error = emit(op.subtract(exact, emit(self.product(plan, activation))))
        rank = exact.struct_info.ndim
        others = [axis for axis in range(rank) if axis != plan.layer.result_axis % rank]
        self.means[id(call)] = [
            emit(op.mean(emit(op.multiply(error, error)))),
            emit(op.mean(emit(op.multiply(exact, exact)))),
            emit(op.mean(error, others)),
        ]
        return exact


def measure_layers(func: Function, plans: Sequence[Plan]) -> Function:
    """A function that returns three tensors for each plan, in order.

    They are the mean square of the errors of the layer in integers (on the same activation as in
    float32), that of the layer's result, and the mean error of each channel.
    """
    measurer = _Measurer(plans)
    rewritten: Function = measurer.visit_expr(func)
    means = [item for plan in plans for item in measurer.means[id(plan.layer.call)]]
    return returning(rewritten, means)


def returning(func: Function, results: Sequence[Expr]) -> Function:
    """The function, which returns these values, all bound in it, instead of its own result."""
    body = SeqExpr(func.body.blocks, Tuple(results))
    return Function(func.params, body, None, func.is_pure, func.attrs)


def activations_of(layers: Sequence[Layer]) -> list[Expr]:
    """The activations that the layers read, each once."""
    return list(dict.fromkeys([layer.call.args[0] for layer in layers]))
