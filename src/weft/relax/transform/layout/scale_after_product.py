"""ScaleAfterProduct: products of floats with dequantized weights multiply the bytes.

Before: ``matmul(x, astype(w, "float32") * s)`` with ``x`` in float32 and constant weights ``w`` in
int8, which have no scale, one, or one for each column. After: ``matmul(x, w, out_dtype="float32") *
s``. Where each block of 32 rows, say, has scales of its own (``s`` is ``repeat(t, 32, axis=0)``),
it becomes ``block_scaled_matmul(x, w', t)`` with ``w'`` of shape (blocks, 32, columns).

A kernel converts a weight when it multiplies it, as those of 16 bits (``NarrowWeights``), so that a
call reads a quarter of the memory and converts no matrix before it multiplies. Weights that
FoldConstant turns into floats stay as they are: they are small.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr, Function, const
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import dtype_of
from weft.relax.transform.graph.fold_constant import LIMIT
from weft.relax.transform.layout.centred import known, sizes_of, value_of
from weft.relax.transform.layout.dequantized import Dequantized, dequantized_of
from weft.relax.transform.passes import define_operator_pass
from weft.runtime.weight_names import inherit_name

_MATMUL, _REPEAT, _SLICE = (
    Op.get(f"relax.{name}") for name in ("matmul", "repeat", "strided_slice")
)
_FLOAT_BYTES: Final = 4


class _Scaler(PyExprMutator):
    def visit_call_(self, call: Call) -> Expr:
        product = expect(super().visit_call_(call), Call)
        if not isinstance(product, Call) or product.op is not _MATMUL:
            return product
        data, weights = product.args
        sizes = sizes_of(data)
        if {dtype_of(data), dtype_of(product)} != {"float32"} or sizes is None or len(sizes) < 2:
            return product
        part = dequantized_of(weights, self.lookup_binding)
        numbers = None if part is None else self.numbers(part)
        if part is None or numbers is None:
            return product
        scale = self.scale_of_columns(part)
        if scale is None:
            return self.product_of_blocks(data, numbers, part) or product
        turned = self.permuted(numbers, part)
        whole = Call(product.op, [data, turned], product.attrs.updated(out_dtype="float32"))
        if isinstance(scale, Constant) and not sizes_of(scale) and scale.data.numpy() == 1:
            return whole
        return op.multiply(self.builder_.emit(whole), scale)

    def numbers(self, part: Dequantized) -> Constant | None:
        """The weights less their zero point, if they are a large constant that int8 holds."""
        weights = known(part.integers.numbers, self.lookup_binding)
        if weights is None or weights.data.numpy().ndim != 2:
            return None
        values, zero = weights.data.numpy(), part.integers.zero
        if values.size * _FLOAT_BYTES <= LIMIT:
            return None
        if zero is not None:
            point = known(zero, self.lookup_binding)
            if point is None:
                return None
            values = values.astype(np.int32) - point.data.numpy().astype(np.int32)
        if values.dtype == np.int8:
            return weights
        if values.min() < -128 or values.max() > 127:
            return None
        centred = const(values.astype(np.int8))
        inherit_name(centred.data, [weights.data])
        return centred

    def product_of_blocks(self, data: Expr, numbers: Constant, part: Dequantized) -> Expr | None:
        """The product, if blocks of the rows have known scales of their own."""
        repeated = self.repeated(part.scale)
        if repeated is None:
            return None
        scales, size, axis = repeated
        axes = part.axes or (0, 1)
        matrix, factors = numbers.data.numpy().transpose(axes), scales.data.numpy()
        if factors.ndim != 2 or axis != axes[0]:
            return None
        factors = np.ascontiguousarray(factors.transpose(axes))
        if (len(factors) * size, factors.shape[1]) != matrix.shape:
            return None
        blocks = const(np.ascontiguousarray(matrix).reshape(len(factors), size, -1))
        inherit_name(blocks.data, [numbers.data])
        return op.block_scaled_matmul(data, blocks, const(factors))

    def repeated(self, scale: Expr) -> tuple[Constant, int, int] | None:
        """Known scales, how often each is repeated, and along which axis."""
        value = value_of(scale, self.lookup_binding)
        while isinstance(value, Call) and value.op is _SLICE:
            if sizes_of(value) != sizes_of(value.args[0]):
                return None
            value = value_of(value.args[0], self.lookup_binding)
        if not isinstance(value, Call) or value.op is not _REPEAT or value.attrs["axis"] is None:
            return None
        scales = known(value.args[0], self.lookup_binding)
        axis = int(value.attrs["axis"]) % max(value.struct_info.ndim, 1)
        return None if scales is None else (scales, int(value.attrs["repeats"]), axis)

    def scale_of_columns(self, part: Dequantized) -> Expr | None:
        """The scale of the product's columns; None if that of the weights differs along rows."""
        sizes, axes = sizes_of(part.scale), part.axes or (0, 1)
        if sizes is None or len(sizes) > 2:
            return None
        if len(sizes) == 2:
            return self.permuted(part.scale, part) if sizes[axes[0]] == 1 else None
        return part.scale if sizes in ([], [1]) or axes == (0, 1) else None

    def permuted(self, expr: Expr, part: Dequantized) -> Expr:
        if part.axes in (None, (0, 1)):
            return expr
        return self.builder_.emit(op.permute_dims(expr, part.axes))


def scale_after_product(func: Function) -> Function:
    """The function that scales products with bytes instead of the bytes."""
    return _Scaler().visit_expr(func)


ScaleAfterProduct = define_operator_pass("ScaleAfterProduct", scale_after_product)
