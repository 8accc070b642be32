"""ScaleAndShiftNorms: a batch norm with given statistics becomes one product and one sum.

Before: ``batch_norm(x, gamma, beta, mean, variance)[0]``. After: ``x * scale + shift`` with
``scale = gamma / sqrt(variance + epsilon)`` and ``shift = beta - mean * scale``, which FoldConstant
computes where they are weights. It is how PyTorch computes such a norm, too, and spares a
subtraction, a division and what they round. (DecomposeOpsForInference takes the norm apart as it is
defined.) Norms of 16-bit floats stay as they are: their shift would lose too many digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax import op as ops
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Function, Tuple, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.passes import define_function_pass

_BATCH_NORM: Final = Op.get("relax.nn.batch_norm")
_WIDE: Final = ({"float32"}, {"float64"})


class _Rewriter(PyExprMutator):
    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if call.op is not _BATCH_NORM or call.attrs["training"]:
            return call
        infos = [arg.struct_info for arg in call.args]
        is_known = all(isinstance(info, TensorStructInfo) for info in infos)
        if not is_known or infos[0].ndim == -1 or {str(item.dtype) for item in infos} not in _WIDE:
            return call
        data, *params = call.args
        scale, shift = scale_and_shift(call, params, self.builder_)
        axis = call.attrs["axis"] % infos[0].ndim
        others = [place for place in range(infos[0].ndim) if place != axis]
        if others:
            scale, shift = ops.expand_dims(scale, others), ops.expand_dims(shift, others)
        return Tuple([ops.add(ops.multiply(data, scale), shift), *params[2:]])


def scale_and_shift(
    norm: Call, params: Sequence[RelaxExpr], builder: BlockBuilder
) -> tuple[RelaxExpr, RelaxExpr]:
    """``gamma / sqrt(variance + epsilon)`` and ``beta - mean * scale``, one number a channel.

    ``params`` are gamma, beta, mean and variance of the batch norm, of one float type. The scale is
    bound to a variable by ``builder``.
    """
    gamma, beta, mean, variance = params
    dtype = variance.struct_info.dtype
    deviation = ops.sqrt(ops.add(variance, const(norm.attrs["epsilon"], dtype)))
    scale = builder.emit(ops.divide(gamma if norm.attrs["scale"] else const(1.0, dtype), deviation))
    shift = ops.multiply(mean, scale)
    return scale, ops.subtract(beta, shift) if norm.attrs["center"] else ops.negative(shift)


def scale_and_shift_norms(func: Function) -> Function:
    """The function with batch norms as products and sums."""
    return _Rewriter().visit_expr(func)


ScaleAndShiftNorms = define_function_pass("ScaleAndShiftNorms", scale_and_shift_norms)
