"""Makes layers compute the steps of the next layer's activation, with fewer operations a number.

Before, with ``i`` the inverse of an activation's scale and constants ``w``, ``f``, ``c``, ``b``::

    y = relu(conv2d(x, w * f) + c + b)
    q = astype(clip(round(y * i), 0, 255), "uint8")

After (positive factors commute with ``relu``, which the lower end of ``clip`` repeats)::

    q = astype(clip(round(conv2d(x, w * (f * i)) + (c + b) * i), 0, 255), "uint8")

The factors of a whole layer are one constant for each channel then, as in integer-only inference
(Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference", 2018). Results change by roundings of float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from weft.ir.expr import FloatImm, IntImm, RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import Call, Constant, Function, PrimValue, Var, VarBinding, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.transform.quantize.layers import MATMUL

_ADD: Final = Op.get("relax.add")
_MULTIPLY: Final = Op.get("relax.multiply")
_RELU: Final = Op.get("relax.nn.relu")
_ROUND: Final = Op.get("relax.round")
_CLIP: Final = Op.get("relax.clip")


class _Values:
    """The values of a function's variables, and which of them have a single use."""

    def __init__(self, func: Function) -> None:
        self.values: Mapping[Var, RelaxExpr] = {
            binding.var: binding.value
            for block in func.body.blocks
            for binding in block.bindings
            if isinstance(binding, VarBinding)
        }
        self.counts = dict(uses(func))

    def only_use(self, expr: RelaxExpr, *operators: Op) -> Call | None:
        """The call of one of the operators that a variable is, if it is used once."""
        if not isinstance(expr, Var) or self.counts.get(expr) != 1:
            return None
        value = self.values.get(expr)
        return value if isinstance(value, Call) and value.op in operators else None

    def chain(self, product: RelaxExpr) -> list[RelaxExpr]:
        """What ``product`` is computed from, if a factor of it can move to a layer's weights.

        The variables of sums with constants and of rectified values from ``product`` down to the
        layer, with the weights of the layer as the last one; nothing where it is no such value.
        """
        variables, at = [], product
        while (call := self.only_use(at, _ADD, _RELU, IMAGE_CONVOLUTION, MATMUL)) is not None:
            variables.append(at)
            if call.op in (IMAGE_CONVOLUTION, MATMUL):
                weights = call.args[1]
                scaled = self.only_use(weights, _MULTIPLY)
                is_known = scaled is not None and isinstance(scaled.args[1], Constant)
                return [*variables, weights] if is_known else []
            if call.op is _ADD and not isinstance(call.args[1], Constant):
                return []
            at = call.args[0]
        return []

    def is_layer_and_constant(self, total: Call) -> bool:
        """Whether a sum is of a layer's result and a constant: others keep their order, which a
        program may need (adding and taking off a large number rounds).
        """
        layer = self.only_use(total.args[0], IMAGE_CONVOLUTION, MATMUL)
        return layer is not None and isinstance(total.args[1], Constant)


class _Folder(PyExprMutator):
    def __init__(self, func: Function) -> None:
        super().__init__()
        self.known = _Values(func)
        self.factors: dict[RelaxExpr, np.ndarray] = {}
        """Variable -> what it is multiplied by."""
        for value in self.known.values.values():
            if isinstance(value, Call) and value.op is _MULTIPLY:
                self.plan(value)

    def plan(self, product: Call) -> None:
        """Move the constant of a product into the layer that its other factor comes from."""
        factor = product.args[1]
        if (
            isinstance(factor, Constant)
            and factor.struct_info.ndim == 0
            and factor.data.numpy() > 0
        ):
            chain = self.known.chain(product.args[0])
            self.factors.update(dict.fromkeys(chain, factor.data.numpy()))

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """A product whose constant has moved is its other factor; constants on the way grow."""
        value, factor = binding.value, self.factors.get(binding.var)
        if not isinstance(value, Call) or value.op not in (_ADD, _MULTIPLY):
            super().visit_var_binding_(binding)
        elif factor is not None:
            scaled = const(expect(value.args[1], Constant).data.numpy() * factor)
            call = Call(value.op, [self.visit_expr(value.args[0]), scaled], value.attrs)
            self.reemit(binding, binding.var, self.builder_.normalize(call))
        elif value.op is _MULTIPLY and value.args[0] in self.factors:
            self.set_var_remap(binding.var.vid, self.visit_expr(value.args[0]))
        else:
            super().visit_var_binding_(binding)


class _Joiner(PyExprMutator):
    """A layer and two constants become a sum with one; what ``clip`` repeats is left out."""

    def __init__(self, func: Function) -> None:
        super().__init__()
        self.known = _Values(func)

    def visit_call_(self, call: Call) -> RelaxExpr:
        """A sum or a clip with less before it; any other call as it is."""
        if call.op is _ADD and isinstance(call.args[1], Constant):
            inner = self.known.only_use(call.args[0], _ADD)
            if inner is not None and self.known.is_layer_and_constant(inner):
                total = expect(inner.args[1], Constant).data.numpy() + call.args[1].data.numpy()
                return self.visit_expr(op.add(inner.args[0], const(total)))
        if call.op is _CLIP and (rounded := self.known.only_use(call.args[0], _ROUND)) is not None:
            rectified = self.known.only_use(rounded.args[0], _RELU)
            if rectified is not None and _is_from_zero_on(call):
                steps = self.builder_.emit(op.round(self.visit_expr(rectified.args[0])))
                return Call(call.op, [steps, *call.args[1:]], call.attrs)
        return super().visit_call_(call)


def _is_from_zero_on(clip: Call) -> bool:
    least = expect(clip.args[1], PrimValue).value
    return isinstance(least, IntImm | FloatImm) and least.value >= 0


def fold_steps(func: Function) -> Function:
    """The function of integer layers with fewer operations between them."""
    scaled = remove_all_unused(_Folder(func).visit_expr(func))
    return remove_all_unused(_Joiner(scaled).visit_expr(scaled))
