"""ScaleWeights: a factor per channel scales the next convolution's weights instead of the image.

Before: ``convolution(multiply(x, gate), w)``, where the gate has one number per channel, as in
squeeze and excitation (Hu et al., "Squeeze-and-Excitation Networks", 2017), and windows have one
pixel. After: ``convolution(x, multiply(w, gate))``, which does not read and write the image to
scale it.

The pass requires a batch of one image (each image has its own gate), several times as many pixels
as the convolution has filters (else scaling the weights is more work), and no other use of the
product.
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.op import Op
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import BindingBlock, Call, DataflowBlock, DataflowVar, Expr, Function, Var
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.passes import define_operator_pass

LEAST: Final = 4
"""How many pixels per filter an image must have for the weights to be less work to scale."""
_MULTIPLY = Op.get("relax.multiply")


class _Scaler(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.scaled: dict[Var, tuple[Expr, Expr]] = {}
        """Product that only such a convolution uses -> (image, gate)."""

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.scaled = _plan(block)
        return super().visit_dataflow_block_(block)

    def visit_call_(self, call: Call) -> RelaxExpr:
        data = call.args[0] if call.op is IMAGE_CONVOLUTION else None
        scaled = self.scaled.get(data) if isinstance(data, Var) else None
        if scaled is None:
            return super().visit_call_(call)
        image, gate = [self.visit_expr(item) for item in scaled]
        weights = self.builder_.emit(op.multiply(self.visit_expr(call.args[1]), gate))
        convolution = Call(IMAGE_CONVOLUTION, [image, weights], call.attrs, call.sinfo_args)
        return self.builder_.normalize(convolution)


def _plan(block: DataflowBlock) -> dict[Var, tuple[Expr, Expr]]:
    """Product whose factor can move to the weights -> (image, gate)."""
    values = {binding.var: binding.value for binding in block.bindings}
    users: dict[Var, int] = {}
    for binding in block.bindings:
        for var, count in uses(binding.value).items():
            users[var] = users.get(var, 0) + count
    factors: dict[Var, tuple[Expr, Expr]] = {}
    for value in values.values():
        data = value.args[0] if isinstance(value, Call) and value.op is IMAGE_CONVOLUTION else None
        if isinstance(data, DataflowVar) and users.get(data) == 1 and _is_pointwise(value):
            parts = _image_and_gate(values.get(data))
            if parts is not None:
                factors[data] = parts
    return factors


def _is_pointwise(call: Call) -> bool:
    """Whether a convolution of one large image has windows of one pixel and sums all channels."""
    sizes = geometry_of(call)
    if sizes is None or sizes.layouts.names[:2] != ("NCHW", "OIHW") or not sizes.is_dense:
        return False
    if constant_value(sizes.batch) != 1 or not sizes.is_pointwise:
        return False
    (high, wide), filters = sizes.image, constant_value(sizes.filters)
    return bool(high and wide and filters) and (high or 0) * (wide or 0) >= LEAST * (filters or 0)


def _image_and_gate(product: RelaxExpr | None) -> tuple[Expr, Expr] | None:
    """(image, gate) of a product of an image and a number per channel; None for other values."""
    if not isinstance(product, Call) or product.op is not _MULTIPLY:
        return None
    whole = _sizes(product)
    for image, gate in (product.args, reversed(product.args)):
        sizes = _sizes(gate)
        if whole is not None and sizes == [1, whole[1], 1, 1] and _sizes(image) == whole:
            return image, gate
    return None


def _sizes(value: RelaxExpr) -> list[int] | None:
    """The four sizes of an image or a kernel; None if one is symbolic or the rank differs."""
    dims = tensor_dims(value.struct_info)
    sizes = [constant_value(dim) for dim in dims or ()]
    known = [size for size in sizes if size is not None]
    return known if len(known) == len(sizes) == 4 else None


def scale_weights(func: Function) -> Function:
    """The function with scaled weights instead of scaled images before convolutions."""
    used = remove_all_unused(func)  # so that dead bindings do not count as other uses
    rewritten = _Scaler().visit_expr(used)
    return func if rewritten is used else rewritten


ScaleWeights = define_operator_pass("ScaleWeights", scale_weights)
