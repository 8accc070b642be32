"""ONNX models as modules of graph functions: ``from_onnx``."""

from weft.relax.frontend.onnx.importer import from_onnx
from weft.relax.frontend.onnx.registry import converter

__all__ = ["converter", "from_onnx"]
