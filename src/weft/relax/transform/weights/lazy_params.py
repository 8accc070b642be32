"""LazyGetInput loads weights when they are needed; LazySetOutput returns results one by one.

Before: ``def f(a, b): c = R.exp(a); d = R.add(c, b); return (c, d)``. LazyGetInput gives::

    def f(fget_param):  # a function of a number and a name
        a = R.match_cast(fget_param(0, "a"), R.Tensor(...))
        c = R.exp(a)
        b = R.match_cast(fget_param(1, "b"), R.Tensor(...))
        ...

so that not all weights of a model are in memory at once. LazySetOutput calls
``fset_output(index, value)`` after each binding of a result, and returns an empty tuple. Both leave
the first ``num_input`` parameters as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.node import Node
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import defining_vars, erase_to_well_defined
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.host.purity import to_non_dataflow
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import PassError

Load = Callable[[int, str], Call]
"""``(index, name)`` of a weight -> the call that loads it."""


def kept_params(func: Function) -> int:
    """How many parameters stay: the attribute ``num_input``. Raises if there are fewer."""
    count = int(func.attrs.get("num_input", 0))
    if not 0 <= count <= len(func.params):
        raise PassError(
            f"num_input: expected 0 to {len(func.params)}, the number of parameters, got {count}"
        )
    return count


class Weights:
    """The weights of a function, each of which is loaded before the first binding that uses it."""

    def __init__(self, params: list[Var], load: Load) -> None:
        self.numbers = {param: number for number, param in enumerate(params)}
        self.load = load

    def before(self, code: Node) -> Iterator[Binding]:
        """The bindings that load the weights that ``code`` uses and no earlier code did."""
        for var in collect(code, Var):
            number = self.numbers.pop(var, None)
            if number is not None:
                yield from loaded(self.load(number, var.name_hint), var)


def loaded(call: Call, var: Var) -> list[Binding]:
    """The bindings that call a loader and bind its result to ``var``, with a check of its type."""
    call.struct_info = ObjectStructInfo()
    untyped = Var(f"{var.name_hint}_untyped", call.struct_info)
    return [VarBinding(untyped, call), MatchCast(var, untyped, var.struct_info)]


def with_lazy_inputs(func: Function) -> Function:
    """The function that loads its weights; private functions stay as they are."""
    if "global_symbol" not in func.attrs:
        return func
    count = kept_params(func)
    number, anything = PrimStructInfo("int64"), ObjectStructInfo()
    getter = Var("fget_param", FuncStructInfo([number, anything], anything))
    params = [*func.params[:count], getter]
    weights = Weights(
        list(func.params[count:]),
        lambda index, name: Call(getter, [PrimValue(index), StringImm(name)]),
    )
    blocks = [
        block.with_(
            bindings=[
                lazy for binding in block.bindings for lazy in (*weights.before(binding), binding)
            ]
        )
        for block in func.body.blocks
    ]
    blocks.append(BindingBlock(list(weights.before(func.body.body))))
    visible = {symbol: symbol for param in params for symbol in defining_vars(param.struct_info)}
    lazy = Function(
        params,
        SeqExpr(blocks, func.body.body),
        erase_to_well_defined(func.ret_struct_info or ObjectStructInfo(), visible),
        func.is_pure,
        func.attrs.updated(num_input=count + 1),
    )
    return normalized(lazy)


def with_lazy_outputs(func: Function) -> Function:
    """The function that passes its results to a callback; private functions stay as they are."""
    if "global_symbol" not in func.attrs:
        return func
    number = PrimStructInfo("int64")
    nothing = TupleStructInfo([])
    setter = Var("fset_output", FuncStructInfo([number, ObjectStructInfo()], nothing, False))
    place = kept_params(func) if "num_input" in func.attrs else len(func.params)
    attrs = func.attrs.updated(num_input=place + 1) if "num_input" in func.attrs else func.attrs
    plain = to_non_dataflow(func)
    result = plain.body.body
    fields = list(result.fields) if isinstance(result, Tuple) else [result]
    results = Results(fields, lambda index, value: Call(setter, [PrimValue(index), value]))
    first = BindingBlock([item for param in plain.params for item in results.of(param)])
    blocks = [
        block.with_(
            bindings=[
                item for binding in block.bindings for item in (binding, *results.of(binding.var))
            ]
        )
        for block in plain.body.blocks
    ]
    blocks = [first, *blocks, BindingBlock(list(results.rest()))]
    params = [*plain.params[:place], setter, *plain.params[place:]]
    return normalized(Function(params, SeqExpr(blocks, Tuple([])), nothing, False, attrs))


class Results:
    """The results of a function, each of which is stored once it is computed."""

    def __init__(
        self, fields: Sequence[RelaxExpr], store: Callable[[int, RelaxExpr], Call]
    ) -> None:
        self.store = store
        self.waiting: dict[int, RelaxExpr] = dict(enumerate(fields))

    def of(self, var: Var) -> Iterator[Binding]:
        """The calls that store a variable, one for each of its positions in the result."""
        for index in [index for index, value in self.waiting.items() if value is var]:
            yield self.stored(index, self.waiting.pop(index))

    def rest(self) -> Iterator[Binding]:
        """The calls that store what no binding computes, such as constants."""
        for index, value in self.waiting.items():
            yield self.stored(index, value)

    def stored(self, index: int, value: RelaxExpr) -> Binding:
        return VarBinding(Var("_", None), self.store(index, value))


def normalized(func: Function) -> Function:
    """The function with struct info on every binding."""
    in_normal_form = BlockBuilder().normalize(func)
    return in_normal_form


def without_attr(attrs: Mapping[str, object], name: str) -> dict[str, object]:
    """The attributes without the one called ``name``."""
    return {key: value for key, value in attrs.items() if key != name}


LazyGetInput = define_function_pass("LazyGetInput", with_lazy_inputs)


LazySetOutput = define_function_pass("LazySetOutput", with_lazy_outputs)
