"""LazyTransformParams: ``transform_params`` reads weights one by one and frees them after use.

Before: ``def transform_params(params): a = params[0]; b = R.exp(a); gv = (b,); return gv``. After::

    def transform_params():
        a = R.match_cast(R.call_packed("get_item", 0, ...), R.Tensor(...))
        b = R.exp(a)
        R.vm.kill_object(a)
        R.call_packed("set_item", 0, b, ...)
        return R.tuple()

It applies to every function whose name ends with ``transform_params``. It does what TVM's pass of
this name does, and also passes on a result that is an unchanged weight which nothing else uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import Pass, define_module_pass
from weft.relax.analysis.bindings import all_bindings
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.op.vm import kill_object
from weft.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)
from weft.relax.transform.host.purity import to_non_dataflow
from weft.relax.transform.weights.lazy_params import (
    Results,
    Weights,
    kept_params,
    loaded,
    normalized,
    without_attr,
)
from weft.support.errors import PassError

SUFFIX = "transform_params"


class _Rewriter:
    """Rewrites one function, given the names and extra arguments of the two callbacks."""

    def __init__(
        self, func: Function, getter: str, setter: str | None, extra: tuple[list[Var], list[Var]]
    ) -> None:
        self.func = to_non_dataflow(func)
        self.getter, self.setter, self.extra = getter, setter, extra
        self.count = kept_params(func)
        weights = list(self.func.params[self.count :])
        is_tuple = len(weights) == 1 and isinstance(weights[0].struct_info, TupleStructInfo)
        self.tuple = weights[0] if is_tuple else None
        self.weights = Weights([] if is_tuple else weights, self.load)
        self.read: set[Var] = set()

    def load(self, index: int, name: str) -> Call:  # noqa: ARG002 - a Load
        return self.packed(self.getter, self.extra[0], PrimValue(index))

    def store(self, index: int, value: RelaxExpr) -> Call:
        return self.packed(str(self.setter), self.extra[1], PrimValue(index), value)

    def packed(self, name: str, extra: list[Var], *args: RelaxExpr) -> Call:
        call = Call(ExternFunc(name), [*extra, *args], None, [ObjectStructInfo()])
        call.struct_info = ObjectStructInfo()
        return call

    def rewritten(self) -> Function:
        body, result = self.func.body, self.func.body.body
        output = self.output(result)
        returned: Any = result if output is None else output.value
        results = Results(returned.fields, self.store)
        bindings: list[Binding] = []
        ends = last_uses([b for b in all_bindings(self.func) if b is not output])
        for binding in all_bindings(self.func):
            if output is not None and self.setter is not None and binding is output:
                result = Var(binding.var.name_hint)
                bindings.append(VarBinding(result, Tuple([])))
                continue
            bindings.extend(self.loads(binding))
            for var in ends.get(binding.var, ()) if self.setter is not None else ():
                bindings.extend(results.of(var))
                if var in self.read:
                    bindings.append(VarBinding(Var("_", None), kill_object(var)))
        if self.setter is None:
            bindings.extend(self.weights.before(body.body))
        else:
            rest = list(results.rest())
            for binding in rest:
                bindings.extend(self.weights.before(binding.value))
            bindings.extend(rest)
            result = Tuple([]) if result is body.body else result
        attrs = without_attr(self.func.attrs, "relax.force_pure")
        block = BindingBlock(bindings)
        lazy = Function(self.params(), SeqExpr([block], result), ObjectStructInfo(), False, attrs)
        return normalized(lazy)

    def output(self, result: RelaxExpr) -> Binding | None:
        """The binding of the tuple that is returned; None if the tuple is in the return itself."""
        if isinstance(result, Tuple):
            return None
        for binding in all_bindings(self.func):
            if binding.var is result and isinstance(binding.value, Tuple):
                return binding
        raise PassError(
            f"LazyTransformParams: expected a function that returns a tuple, got {result}"
        )

    def loads(self, binding: Binding) -> list[Binding]:
        """The binding, after the bindings that load the weights it uses first."""
        value = binding.value
        if isinstance(value, TupleGetItem) and value.tuple_value is self.tuple:
            self.read.add(binding.var)
            weight = Var(binding.var.name_hint, value.struct_info)
            load = loaded(self.load(value.index, weight.name_hint), weight)
            return [*load, VarBinding(binding.var, weight)]
        return [*self.weights.before(value), binding]

    def params(self) -> list[Var]:
        """The parameters: inputs, extra arguments of the callbacks, and the symbols of weights."""
        parameters = [*self.func.params[: self.count], *self.extra[0], *self.extra[1]]
        for param in self.func.params[self.count :]:
            for info in _fields(param.struct_info):
                if isinstance(info, PrimStructInfo | ShapeStructInfo) and symbolic_vars(info):
                    parameters.append(Var("symbolic_var_holder", info))
        return parameters


def _fields(info: StructInfo) -> list[StructInfo]:
    if isinstance(info, TupleStructInfo):
        return [inner for field in info.fields for inner in _fields(field)]
    return [info]


def last_uses(bindings: Sequence[Binding]) -> dict[Var, list[Var]]:
    """Bound variable -> the variables that its binding uses last (itself, if it is never used)."""
    seen: set[Var] = set()
    dying: dict[Var, list[Var]] = {}
    for binding in reversed(bindings):
        used = [*collect(binding.value, Var), binding.var]
        dying[binding.var] = [var for var in dict.fromkeys(used) if var not in seen]
        seen.update(used)
    return dying


def LazyTransformParams(  # noqa: N802 - TVM's name
    fget_item: str = "get_item",
    fset_item: str | None = "set_item",
    extra_get_item_params: Sequence[Var] | None = None,
    extra_set_item_params: Sequence[Var] | None = None,
) -> Pass:
    """The pass that loads weights and passes on results one by one in ``transform_params``.

    Weights come from ``fget_item(*extra, index)``, results go to ``fset_item(*extra, index,
    value)``. If ``fset_item`` is None, the results are returned as before.
    """
    if not isinstance(fget_item, str):
        raise PassError(f"LazyTransformParams: fget_item: expected a name, got {fget_item!r}")
    extra = list(extra_get_item_params or ()), list(extra_set_item_params or ())

    def run(mod: IRModule) -> IRModule:
        functions = dict(mod.functions)
        for gvar, func in mod.functions.items():
            if gvar.name_hint.endswith(SUFFIX) and isinstance(func, Function):
                functions[gvar] = _Rewriter(func, fget_item, fset_item, extra).rewritten()
        return IRModule(functions, None, mod.attrs, mod.global_infos)

    return define_module_pass("LazyTransformParams", run)()
