"""WidenIntegers: products of 8-bit integers become products of int16, if the processor has these.

Before: ``matmul(x, w, out_dtype="int32")`` of int8 or uint8. After: ``matmul(astype(x, "int16"),
astype(w, "int16"), out_dtype="int32")``, with the same results. One instruction then multiplies
pairs of int16 and adds them up (``Machine.dot_products``). A weight is widened when the model is
built, and an activation once per call, not in each step of the product. Products of uint8 and int8
stay as they are if the processor has an instruction that is exact for them (``byte_products``).
"""

from __future__ import annotations

from typing import Final

from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax import op
from weft.relax.expr import Call, Expr, Function
from weft.relax.expr_functor import PyExprMutator
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.struct_info import dtype_of
from weft.relax.transform.layout.byte_products import multiplies_exactly
from weft.relax.transform.layout.centred import known
from weft.relax.transform.passes import define_operator_pass
from weft.target.machine import Machine, machine_of
from weft.target.target import Target

_PRODUCTS: Final = (Op.get("relax.matmul"), IMAGE_CONVOLUTION)
_NARROW: Final = ("int8", "uint8")
_FITTING: Final = (*_NARROW, "int16")


class _Widener(PyExprMutator):
    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine

    def visit_call_(self, call: Call) -> Expr:
        conv = expect(super().visit_call_(call), Call)
        if not isinstance(conv, Call) or conv.op not in _PRODUCTS:
            return conv
        kinds = [dtype_of(arg) for arg in conv.args]
        if kinds == ["uint8", "int8"] and conv.attrs.get("groups", 1) == 1:
            weights = known(conv.args[1], self.lookup_binding)
            if multiplies_exactly(self.machine, conv, weights):
                return conv
        if str(conv.attrs["out_dtype"]) != "int32" or not all(kind in _FITTING for kind in kinds):
            return conv
        wide = [
            self.builder_.emit(op.astype(arg, "int16")) if kind in _NARROW else arg
            for arg, kind in zip(conv.args, kinds, strict=True)
        ]
        return Call(conv.op, wide, conv.attrs, conv.sinfo_args)


def widen_integers(func: Function) -> Function:
    """The function with the bytes of products, summed in int32, as int16."""
    target = Target.current(allow_none=True)
    machine = machine_of(target)
    return _Widener(machine).visit_expr(func) if machine.dot_products else func


WidenIntegers = define_operator_pass("WidenIntegers", widen_integers)
