"""What can be wrong with an ONNX model, or with how it is imported."""

from __future__ import annotations

from types import ModuleType

from weft.support.errors import IRValueError, UnsupportedError


class OnnxModelError(IRValueError):
    """The model is no valid ONNX, or what the caller says of it contradicts it."""


class OnnxNodeError(UnsupportedError):
    """A node of the model asks for what its converter does not do."""


class ConstantNeededError(UnsupportedError):
    """An operator needs the value of an input at import, and it is known only at run time.

    ``sources`` names the inputs of the graph that the value is computed from; with their values
    bound as constants (``shape_dict`` or initializers) the model can be imported.
    """

    def __init__(self, message: str, sources: frozenset[str]) -> None:
        super().__init__(message)
        self.sources = sources


class ShapeNeededError(ConstantNeededError):
    """An operator needs at import that an extent is a number; ``sources`` decide it."""


def need_onnx() -> ModuleType:
    """The package ``onnx``; it is an optional extra of weft."""
    try:
        import onnx  # noqa: PLC0415 - an optional package, imported where it is used
        import onnx.defs  # noqa: PLC0415 - an optional package, imported where it is used
        import onnx.helper  # noqa: PLC0415 - an optional package, imported where it is used
        import onnx.numpy_helper  # noqa: PLC0415 - an optional package, imported where it is used
    except ImportError as error:
        raise UnsupportedError(
            "relax.frontend.onnx: the package onnx is not installed; "
            "install it with `pip install 'weft-compiler[onnx]'`"
        ) from error
    package: ModuleType = onnx
    return package
