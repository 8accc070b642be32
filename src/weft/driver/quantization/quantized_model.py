"""What ``weft.quantize`` returns: a model for ``weft.compile``, and a report."""

from __future__ import annotations

import json

from weft.driver.module_keys import key_of_ir
from weft.driver.quantization.report import QuantizationReport
from weft.driver.sources import Imported, Request
from weft.ir.module import IRModule
from weft.support.errors import IRTypeError


class QuantizedModel:
    """A model whose layers multiply integers; ``weft.compile`` takes it.

    Attributes:
        report: what became of each layer, and its error.
    """

    def __init__(self, imported: Imported, report: QuantizationReport) -> None:
        self.imported, self.report = imported, report

    @property
    def module(self) -> IRModule:
        """The graph, with integers around the layers."""
        return self.imported.module

    def __repr__(self) -> str:
        layers = f"{self.report.integer_layers} of {len(self.report.layers)} layers in int8"
        return f"QuantizedModel({self.imported.signature.name}, {layers})"


def import_quantized(request: Request) -> Imported:
    """The model as it is: it was imported when it was quantised."""
    if request.has_examples or request.options or request.dynamic_shapes is not None:
        raise IRTypeError(
            "compile: a quantized model has its shapes and needs no example inputs or options of "
            "an importer; give them to weft.quantize"
        )
    quantized: QuantizedModel = request.model
    return quantized.imported


def key_of_quantized(request: Request) -> bytes | None:
    """Bytes that identify the graph, its constants and its signature."""
    imported = import_quantized(request)
    key = key_of_ir(imported.module)
    return None if key is None else key + json.dumps(imported.signature.to_json()).encode()
