"""VMBuiltinLower (LowerRuntimeBuiltin): lowers the operators that the virtual machine executes.

Before: ``R.memory.alloc_tensor(storage, 0, shape, dtype)``, ``R.reshape(x, shape)``. After:
``R.vm.alloc_tensor(storage, 0, shape, dtype)``,
``R.call_packed("vm.builtin.reshape", x, shape, sinfo_args=(...,))``. There is one row per operator;
an operator's attribute ``FLowerBuiltin`` (``(builder, call) -> expression``) adds one from outside.
LowerAllocTensor must come before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.expr import RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.operator_rules import OperatorRules
from weft.relax.expr import Call, DataTypeImm, ExternFunc, Function, PrimValue, Tuple
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import ObjectStructInfo, TupleStructInfo
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import LegalizeError

Lower = Callable[[Call], Call]


LOWER: Final = OperatorRules[Lower]("relax.")
"""Operator -> how its calls are lowered."""


def _packed(name: str) -> Lower:
    """Lower a call to one of the registered function ``name`` with the same arguments."""
    callee = ExternFunc(f"vm.builtin.{name}")
    return lambda call: Call(callee, call.args, None, [call.struct_info])


LOWER.of("memory.view")(_packed("view"))
LOWER.of("memory.ensure_zero_offset")(_packed("ensure_zero_offset"))
LOWER.of("reshape")(_packed("reshape"))
LOWER.of("shape_of")(_packed("shape_of"))
LOWER.of("shape_to_tensor")(_packed("shape_to_tensor"))
LOWER.of("tensor_to_shape")(_packed("tensor_to_shape"))
LOWER.of("null_value")(_packed("null_value"))


@LOWER.of("memory.alloc_storage")
def _alloc_storage(call: Call) -> Call:
    size, device, scope, _ = call.args
    return Call(Op.get("relax.vm.alloc_storage"), [size, device, DataTypeImm("uint8"), scope])


@LOWER.of("memory.alloc_tensor")
def _alloc_tensor(call: Call) -> Call:
    return Call(Op.get("relax.vm.alloc_tensor"), call.args)


@LOWER.of("memory.kill_storage", "memory.kill_tensor")
def _kill(call: Call) -> Call:
    return Call(Op.get("relax.vm.kill_object"), call.args)


@LOWER.of("vm.call_tir_dyn")
def _call_tir_dyn(call: Call) -> Call:
    callee = ExternFunc("vm.builtin.call_tir_dyn")
    arguments = [call.args[0], *expect(call.args[1], Tuple).fields]
    return Call(callee, arguments, None, [TupleStructInfo([])])


@LOWER.of("to_vdevice")
def _to_vdevice(call: Call) -> Call:
    device = call.attrs["dst_vdevice"]
    kind = PrimValue(int(device.target.get_target_device_type()))
    arguments = [call.args[0], kind, PrimValue(int(device.vdevice_id))]
    return Call(ExternFunc("vm.builtin.to_device"), arguments, call.attrs, [call.struct_info])


@LOWER.of("make_closure")
def _make_closure(call: Call) -> Call:
    arguments = [call.args[0], *expect(call.args[1], Tuple).fields]
    return Call(ExternFunc("vm.builtin.make_closure"), arguments, None, [ObjectStructInfo()])


@LOWER.of("invoke_closure", "invoke_pure_closure")
def _invoke_closure(call: Call) -> Call:
    arguments = Tuple([call.args[0], *expect(call.args[1], Tuple).fields])
    callee = ExternFunc("vm.builtin.invoke_closure")
    operator = Op.get("relax.call_builtin_with_ctx")
    return Call(operator, [callee, arguments], None, [ObjectStructInfo()])


@LOWER.of("builtin.alloc_tensor")
def _unplanned(call: Call) -> Call:
    raise LegalizeError(
        f"VMBuiltinLower: {call} should have been lowered before; run "
        "relax.transform.LowerAllocTensor first"
    )


class _BuiltinLowerer(PyExprMutator):
    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return call
        lower = LOWER.get(call.op)
        if lower is not None:
            return lower(call)
        lower_builtin = call.op.get_attr("FLowerBuiltin")
        return call if lower_builtin is None else lower_builtin(self.builder_, call)


def vm_builtin_lower(func: Function) -> Function:
    """The function with operators of the virtual machine only."""
    return _BuiltinLowerer().visit_expr(func)


LowerRuntimeBuiltin = define_function_pass("LowerRuntimeBuiltin", vm_builtin_lower)


VMBuiltinLower = LowerRuntimeBuiltin
"""The name of the pass in other versions of TVM."""
