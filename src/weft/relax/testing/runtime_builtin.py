"""The codes of the virtual machine's shape functions, where TVM has them."""

from weft.runtime.vm.shape_codes import MakeShapeCode, MatchShapeCode

__all__ = ["MakeShapeCode", "MatchShapeCode"]
