"""``weft.quantize``: quantises the layers of a trained model, by samples of its inputs."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.driver.progress import Progress
from weft.driver.quantization.calibration import Program, codings_of, errors_of
from weft.driver.quantization.quantized_model import QuantizedModel
from weft.driver.quantization.report import LayerReport, QuantizationReport
from weft.driver.sources import Imported, import_model, request_of, source_of
from weft.driver.training import warn_of_training
from weft.ir.module import IRModule
from weft.ir.transform import Sequential
from weft.relax.transform.graph.fold_constant import FoldConstant
from weft.relax.transform.host.purity import ToNonDataflow
from weft.relax.transform.layout.centred import sizes_of
from weft.relax.transform.quantize.insert import Plan, insert_integers
from weft.relax.transform.quantize.layers import Layer, Unsuitable, layers_of
from weft.relax.transform.quantize.numbers import Coding
from weft.relax.transform.stages import NORMS
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError
from weft.support.progress import listening, tell
from weft.support.public_entry import public_entry
from weft.target.machine import machine_of
from weft.target.target import Target, target_meant

_METHODS: Final = ("static", "dynamic")
_CALIBRATIONS: Final = ("minmax", "percentile")


@dataclass(frozen=True)
class Settings:
    """The options of ``quantize`` that say how layers are chosen and measured."""

    method: str
    calibration: str
    percentile: float
    bias_correction: bool
    limit: float
    skip: frozenset[str]

    def __post_init__(self) -> None:
        for name, names in (("method", _METHODS), ("calibration", _CALIBRATIONS)):
            if getattr(self, name) not in names:
                given = getattr(self, name)
                raise IRValueError(
                    f"quantize: {name}: expected {' or '.join(names)}, got {given!r}"
                )
        if not 50 < self.percentile <= 100:
            raise IRValueError(
                "quantize: percentile: expected a number over 50 and at most 100, got "
                f"{self.percentile}"
            )
        if not self.limit >= 0:
            raise IRValueError(f"quantize: limit: expected 0 or more, got {self.limit}")

    @property
    def outliers(self) -> float | None:
        """The percentile at which ranges end; None: at the least and the greatest number."""
        return self.percentile if self.calibration == "percentile" else None

    def reason_against(self, layer: Layer) -> str | None:
        """Why a layer that could multiply integers shall not; None if it shall."""
        if layer.name in self.skip:
            return "it is among those to skip"
        if self.method == "dynamic" and layer.kind != "matmul":
            return "ranges of each call are for products only"
        return None

    def reason_against_error(self, error: float) -> str:
        """Why a layer with this error stays in float32; "" if it does not."""
        if math.isnan(error):
            return "its numbers on the samples are not finite"
        exceeds = error > self.limit
        return f"its error exceeds the limit of {self.limit:.2%}" if exceeds else ""


@public_entry("weft.quantize")
def quantize(
    model: Any,
    samples: Iterable[Any],
    *,
    method: str = "static",
    calibration: str = "minmax",
    percentile: float = 99.99,
    bias_correction: bool = True,
    limit: float = 0.1,
    skip: Collection[str] = (),
    target: Any = None,
    dynamic_shapes: Any = None,
    **options: object,
) -> QuantizedModel:
    """Give a trained model layers that multiply 8-bit integers (post-training quantisation).

    Convolutions of images without groups and products with constant matrices become integer
    layers: weights int8 with a scale for each channel, activations uint8. All else stays float32.

    Args:
        model: any model that ``weft.compile`` takes.
        samples: typical inputs, each as a call takes them: a tensor, a tuple of arguments, or a
            dict of arguments by name. Ten to a hundred are usual. The first one is the example
            input of a model from torch.
        method: ``"static"``: activations have the ranges that they have on the samples.
            ``"dynamic"``: products find the range of their activation in each call, and
            convolutions stay float32.
        calibration: of static ranges: ``"minmax"``, or ``"percentile"``, which leaves outliers out.
        percentile: how much of an activation's numbers lies below its greatest one, and above its
            least one, for ``"percentile"``.
        bias_correction: add the mean error of each channel to the layer's result.
        limit: layers with a larger relative error on the samples stay float32.
        skip: names of layers that stay float32, as the report shows them.
        target, dynamic_shapes, options: as for ``weft.compile``.

    Returns:
        A QuantizedModel: ``weft.compile`` takes it, and its ``report`` lists the layers.

    Raises:
        IRValueError: for no sample, or an option out of its range; IRTypeError for a wrong type;
        UnsupportedError for a model whose calls change its tensors.

    >>> import numpy as np, weft
    >>> from weft import relax
    >>> x = relax.Var("x", relax.TensorStructInfo((2, 16), "float32"))
    >>> weights = np.random.default_rng(0).standard_normal((16, 8)).astype("float32")
    >>> builder = relax.BlockBuilder()
    >>> with builder.function("main", [x]):
    ...     y = builder.emit(relax.op.matmul(x, relax.const(weights)))
    ...     main = builder.emit_func_output(y)
    >>> samples = [np.random.default_rng(i).random((2, 16), "float32") for i in range(8)]
    >>> quantized = weft.quantize(builder.get(), samples)
    >>> quantized
    QuantizedModel(main, 1 of 1 layers in int8)
    >>> y = weft.compile(quantized)(samples[0])
    >>> bool(np.abs(y - samples[0] @ weights).max() < 0.1)
    True
    """
    if isinstance(model, QuantizedModel):
        raise IRTypeError("quantize: the model is quantized already; give it to weft.compile")
    if isinstance(skip, str):
        raise IRTypeError(f"quantize: skip: expected names of layers, got a text; write [{skip!r}]")
    settings = Settings(method, calibration, percentile, bias_correction, limit, frozenset(skip))
    listed = _listed(samples)
    warn_of_training(model)
    examples = listed[0] if _needs_examples(model) else None
    with Progress("weft.quantize") as progress, listening(progress.stage):
        tell("importing")
        imported = import_model(request_of(model, examples, dynamic_shapes, options))
        if imported.signature.states or imported.signature.written:
            raise UnsupportedError(
                "quantize: calls of this model change its tensors (a cache, running statistics); "
                "quantize the part of it that changes none"
            )
        program = _prepared(imported, target_meant(target))
        return _quantized(program, settings, listed)


def _listed(samples: Iterable[Any]) -> list[Any]:
    is_single = isinstance(samples, Mapping) or hasattr(samples, "shape")
    if is_single or not isinstance(samples, Iterable):
        raise IRTypeError(
            "quantize: samples: expected a list of inputs, each a tensor, a tuple or a dict, got "
            f"{type(samples).__name__}" + ("; write [it] for a single sample" if is_single else "")
        )
    listed = list(samples)
    if not listed:
        raise IRValueError("quantize: samples: expected at least one, got none")
    return listed


def _needs_examples(model: object) -> bool:
    return not isinstance(model, IRModule) and source_of(model).needs_examples


def _prepared(imported: Imported, target: Target) -> Program:
    """The model with folded norms and constant weights, as the compiler would have it, but without
    dataflow blocks, whose inner values are not visible outside.
    """
    passes = Sequential([*NORMS, FoldConstant(), ToNonDataflow()])
    with target:
        module = passes(imported.module)
    return Program(replace(imported, module=module), target)


def _quantized(program: Program, settings: Settings, samples: Sequence[object]) -> QuantizedModel:
    layers, unsuitable = _chosen(program, settings)
    plans, errors = _planned(program, layers, settings, samples) if layers else ([], [])
    reports, kept = [], []
    for plan, error in zip(plans, errors, strict=True):
        reason = settings.reason_against_error(error)
        if not reason:
            kept.append(plan)
        reports.append(_report(plan.layer, error, reason))
    reports += [_report(layer, None, layer.reason) for layer in unsuitable]
    function = insert_integers(program.function, kept)
    report = QuantizationReport(tuple(reports))
    return QuantizedModel(program.with_function(function), report)


def _report(layer: Layer | Unsuitable, error: float | None, reason: str) -> LayerReport:
    sizes = sizes_of(layer.call.args[1]) or []
    return LayerReport(layer.name, tuple([size for size in sizes if size]), error, reason)


def _chosen(program: Program, settings: Settings) -> tuple[list[Layer], list[Unsuitable]]:
    """The layers to measure, and the others with the reason why they stay in float32."""
    layers, unsuitable = layers_of(program.function)
    names = [layer.name for layer in layers]
    for name in sorted(settings.skip - {*names, *[layer.name for layer in unsuitable]}):
        nearest = difflib.get_close_matches(name, names, n=3) or names[:3]
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        raise IRValueError(f"quantize: skip: no layer is named {name!r}{hint}")
    chosen = []
    for layer in layers:
        reason = settings.reason_against(layer)
        if reason is None:
            chosen.append(layer)
        else:
            unsuitable.append(Unsuitable(layer.name, layer.call, reason))
    return chosen, unsuitable


def _planned(
    program: Program, layers: Sequence[Layer], settings: Settings, samples: Sequence[object]
) -> tuple[list[Plan], list[float]]:
    """What each layer becomes, and its relative error then."""
    codings: Sequence[Coding | None] = [None] * len(layers)
    if settings.method == "static":
        tell("measuring activations")
        codings = codings_of(program, layers, samples, settings.outliers)
    machine = machine_of(program.target)
    in_pairs = machine.multiplies_byte_pairs and not machine.multiplies_bytes
    pairs = zip(layers, codings, strict=True)
    plans = [Plan(layer, coding, in_pairs=in_pairs) for layer, coding in pairs]
    tell("measuring errors of layers")
    errors = errors_of(program, plans, samples)
    if not settings.bias_correction:
        return plans, [error.relative for error in errors]
    measured = zip(plans, errors, strict=True)
    corrected = [replace(plan, correction=error.means) for plan, error in measured]
    return corrected, [error.corrected for error in errors]
