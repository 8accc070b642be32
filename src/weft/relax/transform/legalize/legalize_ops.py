"""LegalizeOps: replaces operators by ``call_tir`` of PrimFuncs made from tensor expressions.

Before: ``lv = R.nn.relu(x)``. After: ``lv = R.call_tir(cls.relu, (x,), out_sinfo=...)``, and the
module has a private PrimFunc ``relu`` of provenance "te". Equal PrimFuncs are shared, and equal
calls are lowered once. Operators on tensors of unknown shape, and those without a rule, stay.
Operators that a rule uses are lowered as well. The rules are in the rows of operators
(``weft.relax.op.definition``).
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping

from weft.ir.expr import RelaxExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import Pass, PassContext, define_module_pass
from weft.relax.expr import Call, PrimValue
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import BaseCheckResult, struct_info_base_check, tensor_dims
from weft.relax.op.base import call_pure_packed
from weft.relax.op.lowering import Rule
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.legalize import rule_of
from weft.relax.transform.legalize.memo import Lowering, call_key, lowering_of
from weft.relax.transform.passes import mutate_module
from weft.support.dtype import DataType
from weft.support.errors import LegalizeError, PassError, TVMError
from weft.tir.op import const as tir_const

logger = logging.getLogger(__name__)


def _number(value: float) -> PrimValue:
    """An attribute as an argument of a packed function; a float keeps all of its digits."""
    return PrimValue(tir_const(value, "float64") if isinstance(value, float) else value)


class LegalizeMutator(PyExprMutator):
    """Applies the rules to every call."""

    def __init__(
        self, mod: IRModule, custom: Mapping[Op, Rule], enable_warning: bool = False
    ) -> None:
        super().__init__(mod)
        self.custom, self.enable_warning = custom, enable_warning
        self.memo: dict[Hashable, Lowering] = {}

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return call
        packed = call.op.get_attr("packed")
        if packed is not None and call.op not in self.custom:
            attributes = [_number(call.attrs[name]) for name in call.op.get_attr("attrs")]
            return call_pure_packed(packed, *call.args, *attributes, sinfo_args=call.struct_info)
        rule = self.custom.get(call.op) or rule_of(call.op)
        if rule is None:
            self.warn(call.op)
            return call
        if not all(_known(arg.struct_info) for arg in call.args):
            return call
        return self.lowered(rule, call) if call.op in self.custom else self.memoised(rule, call)

    def warn(self, op: Op) -> None:
        """Log that a tensor operator has no rule, if warnings are enabled."""
        if self.enable_warning and op.get_attr("params") is not None:
            logger.warning("LegalizeOps: no rule for %s; it stays as it is", op.name)

    def memoised(self, rule: Rule, call: Call) -> RelaxExpr:
        """The lowering of a call; if an equal call was lowered before, that lowering."""
        cached = call_key(call)
        if cached is None:
            return self.lowered(rule, call)
        key, leaves = cached
        known = self.memo.get((rule, key))
        if known is not None:
            return known.call(leaves)
        lowered, bound = self.expanded(rule, call)
        lowering = None if bound else lowering_of(lowered, leaves)
        if lowering is not None:
            self.memo[rule, key] = lowering
        return lowered

    def lowered(self, rule: Rule, call: Call) -> RelaxExpr:
        """The result of the rule, with the operators in it lowered as well."""
        return self.expanded(rule, call)[0]

    def expanded(self, rule: Rule, call: Call) -> tuple[RelaxExpr, bool]:
        """The result of the rule, and whether the rule has emitted bindings."""
        builder = self.builder_
        if builder.current_block_is_dataflow():
            builder.begin_dataflow_block()
        else:
            builder.begin_binding_block()
        try:
            lowered = rule(builder, call)
            if lowered is None:
                raise LegalizeError(f"LegalizeOps: the rule of {call.op.name} returned None")
            lowered = call if lowered is call else builder.normalize(lowered)
        except TVMError as error:
            error.add_note(f"while lowering {call}")
            raise
        finally:
            emitted = builder.end_block()
        for binding in emitted.bindings:
            self.visit_binding(binding)
        lowered = lowered if lowered is call else self.visit_expr(lowered)
        _check_result(call, lowered)
        return lowered, bool(emitted.bindings)


def _check_result(call: Call, result: RelaxExpr) -> None:
    """Raise if the result of a rule is known to have another type than the call."""
    declared, actual = call.struct_info, result.struct_info
    if declared is None or actual is None:
        return
    if struct_info_base_check(declared, actual) == BaseCheckResult.FAIL_L0:
        raise LegalizeError(
            f"LegalizeOps: the rule of {call.op.name}: expected {declared}, as the call says, "
            f"got {actual}{_why_wider(call.op, declared, actual)}"
        )


def _why_wider(op: object, declared: StructInfo, actual: StructInfo) -> str:
    """What may have made the elements of a tensor expression wider; empty for another fault."""
    if not isinstance(declared, TensorStructInfo) or not isinstance(actual, TensorStructInfo):
        return ""
    types = [DataType(info.dtype) for info in (declared, actual)]
    is_wider = all(item.is_float for item in types) and types[0].bits < types[1].bits
    if not is_wider or not isinstance(op, Op) or not op.has_attr("te"):
        return ""
    return (
        f"; in its tensor expression a Python float beside an element of {types[0]} is float32: "
        "write tir.const(number, x.dtype), or compute with whole tensors (x * 0.5)"
    )


def _known(info: StructInfo | None) -> bool:
    """Whether shape and dtype of an argument are known, as a PrimFunc needs them."""
    if isinstance(info, TensorStructInfo):
        return info.dtype != "void" and tensor_dims(info) is not None
    if isinstance(info, TupleStructInfo):
        return all(_known(field) for field in info.fields)
    if isinstance(info, ShapeStructInfo):
        return info.values is not None
    return isinstance(info, PrimStructInfo)


def legalize_ops(
    mod: IRModule, custom: Mapping[Op, Rule], enable_warning: bool = False
) -> IRModule:
    """The module with its operators lowered; ``mod`` if there are none, or by the option."""
    if not PassContext.current().config.get("relax.transform.apply_legalize_ops", True):
        return mod
    return mutate_module(mod, LegalizeMutator(mod, custom, enable_warning))


def LegalizeOps(  # noqa: N802 - TVM's name
    customize_legalize_map: Mapping[str, Rule] | None = None,
    enable_warning: bool = False,
) -> Pass:
    """The pass that lowers operators to calls of PrimFuncs.

    ``customize_legalize_map`` maps names of operators to rules that override the operators' own.
    With ``enable_warning``, operators without a rule are logged. The option
    ``relax.transform.apply_legalize_ops`` disables the pass.
    """
    if customize_legalize_map is not None and not isinstance(customize_legalize_map, Mapping):
        raise PassError(
            "LegalizeOps: expected a dict from operator names to rules, got "
            f"{type(customize_legalize_map).__name__}"
        )
    custom = {Op.get(name): rule for name, rule in (customize_legalize_map or {}).items()}

    return define_module_pass("LegalizeOps", legalize_ops)(custom, enable_warning)
