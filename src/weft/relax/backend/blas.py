"""Matrix products by numpy's BLAS, for comparison with weft's own kernels: ``llvm -libs=blas``.

It works as any external library does (FuseOpsByPattern, RunCodegen): the patterns match products of
float32 and float64 matrices or stacks of matrices, also with a transposed right side, and
``relax.ext.blas`` turns each match into a function that calls ``numpy.matmul`` on the tensors' own
memory. The library has its own threads; numpy's environment variables set their number
(``OPENBLAS_NUM_THREADS``). It is called through Python, so such a model can run, but not be saved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from weft.ir.functor import collect
from weft.ir.op import Op
from weft.relax.backend.patterns import make_matmul_pattern
from weft.relax.expr import Call, Constant, Expr, Function
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.fusion.fuse_ops_by_pattern import FusionPattern, PatternCheckContext
from weft.runtime.module import Module
from weft.runtime.registry import register_func

_Array = np.ndarray

DTYPES: Final = frozenset({"float32", "float64"})
"""The data types for which a BLAS has matrix products."""


def is_blas_product(context: PatternCheckContext) -> bool:
    """Whether operands and result are (stacks of) matrices of one dtype that BLAS supports."""
    parts = [context.annotated_expr[name] for name in ("lhs", "rhs", "root")]
    infos = [part.struct_info for part in parts]
    if not all(isinstance(info, TensorStructInfo) and info.ndim >= 2 for info in infos):
        return False
    return len({info.dtype for info in infos}) == 1 and infos[0].dtype in DTYPES


def _pattern(name: str, transposed_rhs: bool) -> FusionPattern:
    pattern, parts = make_matmul_pattern(transposed_rhs=transposed_rhs)
    return FusionPattern(name, pattern, parts, is_blas_product)


PATTERNS: Final = (_pattern("blas.matmul_transposed", True), _pattern("blas.matmul", False))


@register_func("relax.ext.blas")
def blas_modules(
    functions: Sequence[Function],
    _options: Mapping[str, object],
    _constants: Mapping[Constant, str],
) -> list[Module]:
    """A runtime module with a function for each product."""
    products = {str(func.attrs["global_symbol"]): _product(func) for func in functions}
    return [Module(products, type_key="blas")]


def _product(func: Function) -> Callable[..., None]:
    """A Python function that computes a matched product of two of its arguments."""
    composite = next(part for part in collect(func, Function) if part is not func)
    calls = list(collect(func, Call))
    given = next(call.args for call in calls if not isinstance(call.op, Op))
    place: dict[Expr, int] = {
        inner: func.params.index(arg) for inner, arg in zip(composite.params, given, strict=True)
    }
    by_name = {call.op.name: call for call in calls if isinstance(call.op, Op)}
    left, right = by_name["relax.matmul"].args
    transpose = by_name.get("relax.permute_dims")
    if transpose is None:
        return partial(_multiply, place[left], place[right], lambda array: array)
    axes = transpose.attrs["axes"]
    [source] = transpose.args
    return partial(_multiply, place[left], place[source], lambda array: array.transpose(axes))


def _multiply(left: int, right: int, view: Callable[[_Array], _Array], *tensors: Any) -> None:
    """The product of two of the tensors, written into the last one."""
    arrays = [np.from_dlpack(tensor) for tensor in tensors]
    np.matmul(arrays[left], view(arrays[right]), out=arrays[-1])
