"""Runs a model on samples: the ranges of activations, and the errors of layers in integers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.driver.compile import compile_imported
from weft.driver.sources import Imported
from weft.ir.module import IRModule, with_functions
from weft.relax.expr import Function
from weft.relax.transform.quantize.insert import (
    Plan,
    activations_of,
    measure_layers,
    returning,
)
from weft.relax.transform.quantize.layers import Layer
from weft.relax.transform.quantize.numbers import Coding, coding_of, range_of
from weft.target.target import Target


@dataclass(frozen=True)
class Program:
    """An imported model, the function of it that calls run, and the target to run it on."""

    imported: Imported
    target: Target

    @property
    def module(self) -> IRModule:
        """The model's module."""
        return self.imported.module

    @property
    def function(self) -> Function:
        """The function that a call runs."""
        function = self.module[self.imported.entry]
        assert isinstance(function, Function)
        return function

    def with_function(self, function: Function) -> Imported:
        """The model with another function in its place."""
        var = self.module.get_global_var(self.imported.entry)
        module = with_functions(self.module, {**self.module.functions, var: function})
        return replace(self.imported, module=module)

    def results(
        self, function: Function, count: int, samples: Sequence[object]
    ) -> Iterator[list[np.ndarray]]:
        """For each sample what the function, which returns ``count`` tensors, gives."""
        imported = self.with_function(function)
        leaves = ("tuple", tuple([("leaf", index) for index in range(count)]))
        signature = replace(imported.signature, result=leaves, unpacked=True)
        model = compile_imported(
            replace(imported, signature=signature), self.target, ("weft", "default")
        )
        for sample in samples:
            outputs = model(**sample) if isinstance(sample, Mapping) else model(*_listed(sample))
            yield [np.asarray(output) for output in outputs]


def _listed(sample: object) -> Sequence[object]:
    return sample if isinstance(sample, tuple | list) else (sample,)


def codings_of(
    program: Program, layers: Sequence[Layer], samples: Sequence[object], percentile: float | None
) -> list[Coding]:
    """The coding of each layer's activation.

    Without a percentile, a range reaches from the least to the greatest number in all samples; with
    one, it is the median of the samples' ranges, so that single samples do not decide.
    """
    activations = activations_of(layers)
    function = returning(program.function, activations)
    ranges = np.array([
        [range_of(values, percentile) for values in results]
        for results in program.results(function, len(activations), samples)
    ])  # fmt: skip
    low = ranges[..., 0].min(0) if percentile is None else np.median(ranges[..., 0], axis=0)
    high = ranges[..., 1].max(0) if percentile is None else np.median(ranges[..., 1], axis=0)
    codings = {
        activation: coding_of(float(low[at]), float(high[at]))
        for at, activation in enumerate(activations)
    }
    return [codings[layer.call.args[0]] for layer in layers]


@dataclass(frozen=True)
class Error:
    """How far a layer in integers is off, over all samples."""

    relative: float
    """The root of the mean squared error over that of the mean squared result."""
    means: np.ndarray
    """The mean error of each channel, the result in float32 minus the one in integers: the median
    of the samples, so that one which is cut off by its percentile does not decide."""
    corrected: float
    """The relative error once ``means`` is added to the result in integers."""


def errors_of(program: Program, plans: Sequence[Plan], samples: Sequence[object]) -> list[Error]:
    """The errors of the layers, each computed from an activation in float32."""
    function = measure_layers(program.function, plans)
    rows = list(program.results(function, 3 * len(plans), samples))
    return [_error([row[3 * at : 3 * at + 3] for row in rows]) for at in range(len(plans))]


def _error(rows: Sequence[Sequence[np.ndarray]]) -> Error:
    """The error of a layer from the means of each sample: of squared errors, of squared results,
    of each channel's errors.
    """
    noise, signal, each = [np.array([row[at] for row in rows], "float64") for at in range(3)]
    means = np.median(each, axis=0)
    # E[(e - m)^2] = E[e^2] - 2 m E[e] + m^2, in the mean over the channels.
    rest = noise.mean() + np.mean(means * (means - 2 * each.mean(axis=0)))
    relative, corrected = [_ratio(float(x), float(signal.mean())) for x in (noise.mean(), rest)]
    return Error(relative, means, corrected)


def _ratio(noise: float, signal: float) -> float:
    """The root of a ratio of mean squares; NaN where one is not finite."""
    if not math.isfinite(noise) or not math.isfinite(signal):
        return math.nan
    return math.sqrt(max(noise, 0.0) / signal) if signal > 0 else 0.0
