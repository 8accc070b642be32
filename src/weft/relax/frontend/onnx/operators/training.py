"""ai.onnx.preview.training: one step of an optimiser, on any number of tensors.

Each operator takes the learning rate R, the number T of steps before, and then groups of as many
tensors each: values, gradients, and what the optimiser remembers. It gives the new values and what
is remembered next. (J. Duchi et al., Adaptive Subgradient Methods, 2011; D. Kingma and J. Ba, Adam,
2015; I. Sutskever et al., On the importance of initialization and momentum, 2013.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.relax import op
from weft.relax.expr import Expr
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.registry import converter
from weft.relax.frontend.onnx.value import Value

TRAINING: Final = "ai.onnx.preview.training"


class _Arithmetic:
    """Sums and products of tensors and Python numbers, emitted one by one."""

    def __init__(self, context: Context, dtype: str) -> None:
        self.context, self.dtype = context, dtype

    def _of(self, function: Callable[[Expr, Expr], Expr], a: Expr | float, b: Expr | float) -> Expr:
        first, second = [
            item if isinstance(item, Expr) else self.context.constant(item, self.dtype).expr
            for item in (a, b)
        ]
        return self.context.emit(function(first, second))

    def add(self, a: Expr | float, b: Expr | float) -> Expr:
        return self._of(op.add, a, b)

    def subtract(self, a: Expr | float, b: Expr | float) -> Expr:
        return self._of(op.subtract, a, b)

    def multiply(self, a: Expr | float, b: Expr | float) -> Expr:
        return self._of(op.multiply, a, b)

    def divide(self, a: Expr | float, b: Expr | float) -> Expr:
        return self._of(op.divide, a, b)

    def power(self, a: Expr | float, b: Expr | float) -> Expr:
        return self._of(op.power, a, b)

    def sqrt(self, a: Expr) -> Expr:
        return self.context.emit(op.sqrt(a))

    def regularised(self, x: Expr, gradient: Expr, coefficient: float) -> Expr:
        """The gradient with that of ``coefficient / 2 * x * x``."""
        return self.add(self.multiply(x, coefficient), gradient) if coefficient else gradient


def _groups(context: Context, tensors: Sequence[Value], count: int) -> list[list[Expr]]:
    """The tensors of each variable: its value, its gradient, and what is remembered of it."""
    if not tensors or len(tensors) % count:
        context.fail(
            f"expected {count} tensors for each variable after R and T, got {len(tensors)}"
        )
    size = len(tensors) // count
    return [[tensors[group * size + i].expr for group in range(count)] for i in range(size)]


def _by_output(results: Sequence[Sequence[Expr]]) -> list[Expr]:
    """The new values of all variables, then what is remembered of each, group by group."""
    return [expr for group in zip(*results, strict=True) for expr in group]


@converter("Adagrad", domain=TRAINING)
def adagrad(
    context: Context,
    rate: Value,
    steps: Value,
    *tensors: Value,
    decay_factor: float,
    epsilon: float,
    norm_coefficient: float,
) -> list[Expr]:
    """Steps that shrink with the root of the sum of squared gradients."""
    do = _Arithmetic(context, rate.dtype)
    count = context.as_type(steps.expr, rate.dtype)
    scale = do.divide(rate.expr, do.add(do.multiply(count, decay_factor), 1.0))
    results = []
    for x, gradient, squares in _groups(context, tensors, 3):
        slope = do.regularised(x, gradient, norm_coefficient)
        total = do.add(squares, do.multiply(slope, slope))
        step = do.divide(do.multiply(scale, slope), do.add(do.sqrt(total), epsilon))
        results.append((do.subtract(x, step), total))
    return _by_output(results)


@converter("Adam", domain=TRAINING)
def adam(
    context: Context,
    rate: Value,
    steps: Value,
    *tensors: Value,
    alpha: float,
    beta: float,
    epsilon: float,
    norm_coefficient: float,
    norm_coefficient_post: float,
) -> list[Expr]:
    """Averages of gradients over the root of averages of their squares."""
    do = _Arithmetic(context, rate.dtype)
    count = context.as_type(steps.expr, rate.dtype)
    corrected = do.divide(
        do.multiply(rate.expr, do.sqrt(do.subtract(1.0, do.power(beta, count)))),
        do.subtract(1.0, do.power(alpha, count)),
    )
    has_begun = context.emit(op.greater(count, context.constant(0, rate.dtype).expr))
    scale = context.emit(op.where(has_begun, corrected, rate.expr))
    results = []
    for x, gradient, mean, square in _groups(context, tensors, 4):
        slope = do.regularised(x, gradient, norm_coefficient)
        average = do.add(do.multiply(mean, alpha), do.multiply(slope, 1 - alpha))
        variance = do.add(
            do.multiply(square, beta), do.multiply(do.multiply(slope, slope), 1 - beta)
        )
        step = do.divide(do.multiply(scale, average), do.add(do.sqrt(variance), epsilon))
        new = do.subtract(x, step)
        results.append((do.multiply(new, 1 - norm_coefficient_post), average, variance))
    return _by_output(results)


@converter("Momentum", domain=TRAINING)
def momentum(
    context: Context,
    rate: Value,
    steps: Value,
    *tensors: Value,
    alpha: float,
    beta: float,
    mode: str,
    norm_coefficient: float,
) -> list[Expr]:
    """Steps along a decaying sum of gradients; Nesterov's looks one step ahead."""
    if mode not in ("standard", "nesterov"):
        context.fail(f"mode: expected standard or nesterov, got {mode!r}")
    do = _Arithmetic(context, rate.dtype)
    has_begun = context.emit(op.greater(steps.expr, context.constant(0, steps.dtype).expr))
    whole, later = context.constant(1.0, rate.dtype).expr, context.constant(beta, rate.dtype).expr
    weight = context.emit(op.where(has_begun, later, whole))
    results = []
    for x, gradient, velocity in _groups(context, tensors, 3):
        slope = do.regularised(x, gradient, norm_coefficient)
        moved = do.add(do.multiply(velocity, alpha), do.multiply(weight, slope))
        along = moved if mode == "standard" else do.add(slope, do.multiply(moved, alpha))
        results.append((do.subtract(x, do.multiply(rate.expr, along)), moved))
    return _by_output(results)
