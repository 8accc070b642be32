"""NarrowWeights: constant operands of products become bfloat16 or float16.

Before: ``matmul(x, w)`` with a constant ``w`` in float32. After: ``matmul(x, w', out_dtype=
"float32")`` with ``w'`` in the narrow type. A kernel converts a number of ``w'`` when it multiplies
it, so ``x``, the product and its sums stay float32. Operators with ``Trait.NARROW`` are such
products. Large tables of which rows are taken (embeddings) become ``astype(take(w', i),
"float32")``.

The type is the option ``PassContext(config={"relax.narrow_weights": "bfloat16"})``, which
``weft.compile(dtype="bfloat16")`` sets; without it the pass does nothing. A weight with a finite
number that would become infinite stays float32.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.ir.expr import RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.ir.transform import PassContext, define_module_pass
from weft.relax import op
from weft.relax.expr import Call, Constant
from weft.relax.transform.passes import (
    UnfusedFunctions,
    bound_constant,
    mutate_module,
)
from weft.runtime.weight_names import inherit_name
from weft.support.dtype import DataType
from weft.support.errors import IRValueError

OPTION: Final = "relax.narrow_weights"
NARROW_TYPES: Final = ("bfloat16", "float16")
_TAKE: Final = Op.get("relax.take")
_LARGE: Final = 1 << 20
"""Tables of fewer elements stay float32: those of positions and angles, which are small, too."""


def narrowed(weight: Constant, dtype: str) -> Constant | None:
    """The weight in a narrow type; None if a finite number of it would become infinite."""
    values = weight.data.numpy()
    with np.errstate(over="ignore"):
        narrow = values.astype(DataType(dtype).numpy)
    is_kept = np.isfinite(values) == np.isfinite(narrow.astype("float32"))
    if not bool(is_kept.all()):
        return None
    result = Constant(narrow)
    inherit_name(result.data, [weight.data])
    return result


class _Narrower(UnfusedFunctions):
    def __init__(self, mod: IRModule, dtype: str) -> None:
        super().__init__(mod)
        self.dtype = dtype
        self.known: dict[int, tuple[Constant, Constant | None]] = {}
        """``id`` of a weight -> the weight, kept alive, and what it becomes."""

    def visit_call_(self, call: Call) -> RelaxExpr:
        visited = expect(super().visit_call_(call), Call)
        if has(visited.op, Trait.NARROW):
            return self.product(visited)
        return self.rows(visited) if visited.op is _TAKE else visited

    def product(self, call: Call) -> Call:
        """The product with its constant operands narrowed."""
        if str(getattr(call.struct_info, "dtype", "")) != "float32":
            return call
        args = [self.weight(arg) or arg for arg in call.args]
        if all(new is old for new, old in zip(args, call.args, strict=True)):
            return call
        return Call(call.op, args, call.attrs.updated(out_dtype=DataType("float32")))

    def rows(self, call: Call) -> RelaxExpr:
        """Rows of a large table, widened after they are taken."""
        table = bound_constant(self, call.args[0])
        if table is None or table.data.size < _LARGE:
            return call
        narrow = self.weight(table)
        if narrow is None:
            return call
        taken = self.builder_.emit(Call(call.op, [narrow, *call.args[1:]], call.attrs))
        return self.builder_.normalize(op.astype(taken, "float32"))

    def weight(self, arg: RelaxExpr) -> Constant | None:
        """What a constant of float32 becomes; None for anything else."""
        constant = bound_constant(self, arg)
        if constant is None or constant.data.dtype != "float32":
            return None
        if id(constant) not in self.known:
            self.known[id(constant)] = constant, narrowed(constant, self.dtype)
        return self.known[id(constant)][1]


def checked_type(dtype: object) -> str:
    """The name of a narrow type; IRValueError for anything else."""
    if dtype not in NARROW_TYPES:
        raise IRValueError(f"dtype: expected {' or '.join(map(repr, NARROW_TYPES))}, got {dtype!r}")
    return str(dtype)


def narrow_weights(mod: IRModule) -> IRModule:
    """The module with the weights of products in the type that the option names."""
    dtype = PassContext.current().config.get(OPTION)
    return mod if dtype is None else mutate_module(mod, _Narrower(mod, checked_type(dtype)))


NarrowWeights = define_module_pass("NarrowWeights", narrow_weights)
