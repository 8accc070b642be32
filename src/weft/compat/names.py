"""Small functions and classes of TVM 0.20 that weft spells otherwise, for ``install_as_tvm``."""

from __future__ import annotations

from weft.driver.pipeline import lower_tir
from weft.ir.expr import PrimExpr
from weft.ir.transform import Pass
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.target.target import TargetLike
from weft.tir.expr import BinaryExpr as BinaryOpExpr
from weft.tir.expr import CompareExpr as CmpExpr
from weft.tir.intrinsic import vscale

__all__ = [
    "BinaryOpExpr", "CmpExpr", "enabled", "get_default_tir_pipeline", "get_tir_pipeline",
    "get_vscale_expr",
]  # fmt: skip


def enabled(target: str) -> bool:
    """Whether programs of a target's kind can be compiled and run here.

    >>> enabled("llvm"), enabled("cuda")
    (True, False)
    """
    return str(target).partition(" ")[0] in ("llvm", "cpu")


def get_vscale_expr(dtype: str, min_size: int = 128) -> PrimExpr:
    """How many elements a scalable vector has whose base length is ``min_size`` bits.

    >>> get_vscale_expr("float32")
    T.vscale() * 4
    """
    return vscale() * (min_size // DataType(dtype).bits)


def get_default_tir_pipeline(target: TargetLike | None = None) -> Pass:
    """The passes that lower PrimFuncs for a target."""
    return lower_tir(target)


def get_tir_pipeline(name: str = "default", target: TargetLike | None = None) -> Pass:
    """The lowering of that name: ``"default"``; IRValueError for another one."""
    if name != "default":
        raise IRValueError(f"get_tir_pipeline: expected 'default', got {name!r}")
    return lower_tir(target)
