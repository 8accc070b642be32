"""FoldBatchnormToConv2D: a batch norm after a convolution becomes scaled weights and a bias.

Before: ``y = convolution(x, w); n = batch_norm(y, gamma, beta, mean, var)[0]``. After:
``n = convolution(x, w * scale) + (beta - mean * scale)``, ``scale = gamma / sqrt(var + epsilon)``
(Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", CVPR 2018, section 3.2). Everything but the convolution is constant, and FoldConstant
computes it. As in inference, the statistics are the moving ones.

The pass requires that weights and parameters are constants of one dtype, that the normalised axis
is the channels of the convolution, and that only the norm uses the convolution's result.
"""

from __future__ import annotations

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.transform.graph.scale_and_shift_norms import scale_and_shift
from weft.relax.transform.passes import bound_constant, define_operator_pass

_BATCH_NORM = Op.get("relax.nn.batch_norm")


class _Folder(PyExprMutator):
    def __init__(self, counts: dict[Var, int], keep_training: bool) -> None:
        super().__init__()
        self.counts, self.keep_training = counts, keep_training
        self.original: dict[Var, Var] = {}
        self.folded_norms: dict[Var, Var] | None = None
        """Norm of the current dataflow block whose result is used more than once -> its folding."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.folded_norms = {}
        rewritten: BindingBlock = super().visit_dataflow_block_(block)
        self.folded_norms = None
        return rewritten

    def visit_var_binding_(self, binding: VarBinding) -> None:
        super().visit_var_binding_(binding)
        self.original[self.get_var_remap(binding.var)] = binding.var

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelaxExpr:
        item = expect(super().visit_tuple_getitem_(op), TupleGetItem)
        norm = self.lookup_binding(item.tuple_value)
        if item.index != 0 or not isinstance(norm, Call) or norm.op is not _BATCH_NORM:
            return item
        if self.keep_training and norm.attrs["training"]:
            return item
        product = norm.args[0]
        if not isinstance(product, Var):
            return item
        conv = self.lookup_binding(product)
        if not isinstance(conv, Call) or conv.op is not IMAGE_CONVOLUTION:
            return item
        is_alone = self.counts.get(self.original.get(product, product)) == 1
        is_near = isinstance(product, DataflowVar) or not isinstance(conv.args[0], DataflowVar)
        if not is_alone or not is_near:  # dataflow variables of another block are not visible
            return item
        return self.once(expect(item.tuple_value, Var), conv, norm) or item

    def once(self, tensors: Var, conv: Call, norm: Call) -> RelaxExpr | None:
        """``folded``, but computed only once for all uses of the norm's result."""
        is_shared = self.counts.get(self.original.get(tensors, tensors), 0) > 1
        if self.folded_norms is None or not is_shared:
            return self.folded(conv, norm)
        if tensors not in self.folded_norms:
            folded = self.folded(conv, norm)
            if folded is None:
                return None
            self.folded_norms[tensors] = self.builder_.emit(folded)
        return self.folded_norms[tensors]

    def folded(self, conv: Call, norm: Call) -> Expr | None:
        """The convolution with scaled weights and a bias; None if the norm cannot be folded."""
        known = [bound_constant(self, arg) for arg in (conv.args[1], *norm.args[1:])]
        constants = [constant for constant in known if constant is not None]
        axes = _channel_axes(conv, norm)
        if len(constants) < len(known) or axes is None:
            return None
        weight, *params = constants
        dtypes = {c.struct_info.dtype for c in (weight, *params)} | {conv.struct_info.dtype}
        if len(dtypes) != 1:
            return None
        scale, bias = scale_and_shift(norm, params, self.builder_)
        (channels,) = tensor_dims(params[-1].struct_info) or [None]
        out_axis, weight_axis = axes
        weights = op.multiply(weight, op.reshape(scale, _at(weight_axis, channels)))
        convolution = Call(IMAGE_CONVOLUTION, [conv.args[0], weights], conv.attrs)
        return op.add(convolution, op.reshape(bias, _at(out_axis, channels)))


def _at(axis: int, extent: PrimExpr | None) -> list[PrimExpr | int | None]:
    """A shape of four dimensions: ``extent`` at ``axis``, and 1 elsewhere."""
    return [extent if position == axis else 1 for position in range(4)]


def _channel_axes(conv: Call, norm: Call) -> tuple[int, int] | None:
    """The axes of channels in the result and in the weights; None if the norm is over another."""
    out_layout = conv.attrs["out_layout"] or conv.attrs["data_layout"]
    kernel_layout = conv.attrs["kernel_layout"]
    if len(out_layout) != 4 or len(kernel_layout) != 4:
        return None  # in a blocked layout two axes hold the channels
    if norm.attrs["axis"] % 4 != out_layout.index("C"):
        return None
    return out_layout.index("C"), kernel_layout.index("O")


def fold_batch_norm(func: Function, *, keep_training: bool = False) -> Function:
    """The function with batch norms folded into the convolutions before them.

    ``keep_training`` leaves batch norms alone that use the statistics of the batch.
    """
    return _Folder(uses(func), keep_training).visit_expr(func)


FoldBatchnormToConv2D = define_operator_pass("FoldBatchnormToConv2D", fold_batch_norm)
