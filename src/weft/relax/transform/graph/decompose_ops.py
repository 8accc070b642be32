"""DecomposeOpsForInference: replaces operators by simpler ones that do the same in inference.

``batch_norm`` becomes ``(x - mean) / sqrt(var + epsilon) * gamma + beta`` with the moving
statistics, which it returns unchanged. Each of the simpler operators can then be folded, fused and
laid out. ``tensor_to_shape`` becomes a call of the virtual machine's function, and a match_cast
that gives names to the dimensions, which operators that take a shape need.
"""

from __future__ import annotations

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.ir.transform import ApplyPassToFunction, Pass
from weft.relax import op
from weft.relax.expr import (
    Call,
    ExternFunc,
    Function,
    MatchCast,
    ShapeExpr,
    Tuple,
    Var,
    const,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.shape_arith import INT64
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo
from weft.relax.transform.passes import define_function_pass
from weft.tir.expr import Var as TirVar


class _Decomposer(PyExprMutator):
    def __init__(self, keep_training: bool = False) -> None:
        super().__init__()
        self.keep_training = keep_training

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if call.op is _BATCH_NORM:
            info = call.args[0].struct_info
            is_known = isinstance(info, TensorStructInfo) and info.ndim != -1 and info.dtype
            is_kept = self.keep_training and bool(call.attrs["training"])
            return _batch_norm(call) if is_known and not is_kept else call
        if call.op is _TENSOR_TO_SHAPE and call.struct_info.ndim != -1:
            return self.tensor_to_shape(call)
        return call

    def tensor_to_shape(self, call: Call) -> RelaxExpr:
        """The shape in a tensor, with a new symbol for each of its dimensions."""
        extents = self.builder_.emit(
            op.call_pure_packed(_BUILTIN, call.args[0], sinfo_args=call.struct_info)
        )
        dims = [TirVar("x", INT64) for _ in range(call.struct_info.ndim)]
        info = ShapeStructInfo(dims)
        self.builder_.emit_normalized(MatchCast(Var("y", info), extents, info))
        return ShapeExpr(dims)


_BATCH_NORM = Op.get("relax.nn.batch_norm")
_TENSOR_TO_SHAPE = Op.get("relax.tensor_to_shape")
_BUILTIN = ExternFunc("vm.builtin.tensor_to_shape")


def _batch_norm(call: Call) -> Tuple:
    """The operators that compute a batch norm with given statistics."""
    data, gamma, beta, mean, variance = call.args
    info, attrs = data.struct_info, call.attrs
    axis = attrs["axis"] % info.ndim
    others = [i for i in range(info.ndim) if i != axis]

    def widened(vector: RelaxExpr) -> RelaxExpr:
        return op.expand_dims(vector, others) if others else vector

    epsilon = const(attrs["epsilon"], info.dtype)
    deviation = op.sqrt(op.add(widened(variance), epsilon))
    normalized = op.divide(op.subtract(data, widened(mean)), deviation)
    if attrs["scale"]:
        normalized = op.multiply(normalized, widened(gamma))
    if attrs["center"]:
        normalized = op.add(normalized, widened(beta))
    return Tuple([normalized, mean, variance])


def decompose_ops(func: Function, keep_training: bool) -> Function:
    """The function with operators decomposed as inference needs them."""
    return _Decomposer(keep_training).visit_expr(func)


def DecomposeOpsForInference(  # noqa: N802 - as TVM
    func_name: str | None = None, *, keep_training: bool = False
) -> Pass:
    """Decompose operators as inference needs them, in one function or in all.

    ``keep_training`` leaves batch norms whose statistics are those of the batch as they are.
    """
    function_pass = define_function_pass("DecomposeOps", decompose_ops)(keep_training)
    return function_pass if func_name is None else ApplyPassToFunction(function_pass, func_name)
