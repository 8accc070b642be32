"""ScaleAndShiftNorms: a batch norm with given statistics becomes one product and one sum.

Before: ``batch_norm(x, gamma, beta, mean, variance)[0]``. After: ``x * scale + shift`` with
``scale = gamma / sqrt(variance + epsilon)`` and ``shift = beta - mean * scale``, which FoldConstant
computes where they are weights. It is how PyTorch computes such a norm, too, and spares a
subtraction, a division and what they round. (DecomposeOpsForInference takes the norm apart as it is
defined.) Norms of 16-bit floats stay as they are: their shift would lose too many digits.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.ir.transform import FunctionPass
from weft.relax import op
from weft.relax.expr import Call, Function, Tuple, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform.passes import make_function_pass

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
        return _scaled_and_shifted(call)


def _scaled_and_shifted(call: Call) -> Tuple:
    """The results of a batch norm, the first of which is a product and a sum."""
    data, gamma, beta, mean, variance = call.args
    info, attrs = data.struct_info, call.attrs
    axis = attrs["axis"] % info.ndim
    others = [place for place in range(info.ndim) if place != axis]

    def widened(vector: RelaxExpr) -> RelaxExpr:
        return op.expand_dims(vector, others) if others else vector

    deviation = op.sqrt(op.add(variance, const(attrs["epsilon"], info.dtype)))
    scale = op.divide(gamma if attrs["scale"] else op.ones_like(deviation), deviation)
    shift = op.negative(op.multiply(mean, scale))
    if attrs["center"]:
        shift = op.subtract(beta, op.multiply(mean, scale))
    return Tuple([op.add(op.multiply(data, widened(scale)), widened(shift)), mean, variance])


def _run(func: Function) -> Function:
    return _Rewriter().visit_expr(func)


def ScaleAndShiftNorms() -> FunctionPass:  # noqa: N802 - named as its neighbours are
    """The pass ``ScaleAndShiftNorms``."""
    return make_function_pass("ScaleAndShiftNorms", _run)
