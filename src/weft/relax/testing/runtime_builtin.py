"""The codes of the virtual machine's shape functions, where TVM has them."""

from weft.runtime.shape_codes import MakeShapeCode, MatchShapeCode

__all__ = ["MakeShapeCode", "MatchShapeCode"]
