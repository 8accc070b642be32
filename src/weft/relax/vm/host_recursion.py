"""Functions that call themselves, natively: each becomes a PrimFunc of the host's, a *helper*.

``HostBody`` expands a function where it is called. Where it meets one that it is expanding
already, directly or through others, it calls the helper of that function instead, as the helper
does itself::

    helper(depth, stack_floor, symbols..., inputs..., captured..., outputs..., constant_table)

``symbols`` are what the function's shapes speak of. The caller allocates the outputs, so their
shapes must follow from the arguments. An activation allocates its working memory and frees it when
it ends, with an error too. ``depth`` and the machine stack are checked first: what is nested too
deep is an error (weft.runtime.vm.stack).
"""

from __future__ import annotations

from weft.codegen.llvm.allocation import ON_HEAP
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.node import expect
from weft.ir.structural import structural_equal
from weft.relax.analysis.variables import free_symbolic_vars, free_vars
from weft.relax.expr import ShapeExpr, Var
from weft.relax.ir.lattice import defining_vars, symbolic_vars
from weft.relax.ir.shape_arith import INT64
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.vm.arena import ArenaPlan
from weft.relax.vm.host_body import HostBody
from weft.relax.vm.host_parts import (
    Activation,
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    State,
    identifier,
    packed_call,
)
from weft.relax.vm.host_symbols import HostSymbols
from weft.runtime.vm.stack import MAX_DEPTH
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, DeclBuffer, Evaluate, IfThenElse, Stmt


def call_activation(
    builder: HostBody, local: LocalFunction, arguments: list[HostValue]
) -> HostValue:
    """A call of the helper of a function; the tensors or shapes that it returns."""
    activations = builder.state.shared.activations
    activation = activations.get(id(local.function))
    if activation is None:
        symbol = f"{builder.state.shared.name}_{identifier(local.label)}_{len(activations)}"
        activation = activations[id(local.function)] = _described(symbol, local)
        _build(builder, activation, local)
    inner = builder.symbols.called(local, arguments)
    infos = [param.struct_info for param in local.function.params]
    given = [*arguments, *[local.values[id(var)] for var in activation.captured]]
    infos += [var.struct_info for var in activation.captured]
    pairs = zip(infos, given, strict=True)
    leaves = [leaf for info, value in pairs for leaf in _leaves(info, value)]
    outputs: list[Buffer] = []
    result = _allocated(builder, inner, local.function.ret_struct_info, outputs)
    depth = op.add(builder.state.depth, 1)
    sizes = [op.cast(var.dtype, inner.known[var]) for var in activation.symbols]
    passed = [depth, builder.state.floor, *sizes, *leaves, *outputs, builder.state.pointers]
    builder.step(Evaluate(TirCall(DataType("int32"), GlobalVar(activation.symbol), passed)), passed)
    return result


def _described(symbol: str, local: LocalFunction) -> Activation:
    """What a function needs from outside: variables, symbols, and the functions that it calls."""
    captured: dict[int, Var] = {}
    closures: dict[int, LocalFunction] = {}
    symbols = [var for param in local.function.params for var in defining_vars(param.struct_info)]
    outer: list[TirVar] = []
    values: dict[int, HostValue | None] = {}
    todo = [local]
    for closure in todo:
        outer += free_symbolic_vars(closure.function)
        for var in free_vars(closure.function):
            value = values.setdefault(id(var), closure.values.get(id(var)))
            if value is None or value is not closure.values.get(id(var)):
                raise NotNative(f"the variable {var.name_hint} of {local.label} is not one value")
            if not isinstance(value, LocalFunction):
                captured[id(var)] = var
                outer += symbolic_vars(var.struct_info)
            elif id(var) not in closures:
                closures[id(var)] = value
                todo.append(value)
        if closure is not local and (closure.captured or not _agree(closure, local)):
            raise NotNative(f"{closure.label} captured other values than {local.label}")
    symbols += [var for var in outer if var in local.known]
    unique = list(dict.fromkeys(symbols))
    return Activation(symbol, local.function, unique, list(captured.values()), closures)


def _agree(closure: LocalFunction, other: LocalFunction) -> bool:
    """Whether the symbols around two local functions stand for the same."""
    return all(
        var in other.known and structural_equal(closure.known[var], other.known[var])
        for var in free_symbolic_vars(closure.function)
        if var in closure.known
    )


def _build(outer: HostBody, activation: Activation, local: LocalFunction) -> None:
    """The helper: the function's body, on parameters of its own."""
    depth = TirVar("depth", INT64)
    builder = outer.helper(activation.function, activation.symbol, local.label, depth)
    sizes = [TirVar(var.name, var.dtype) for var in activation.symbols]
    builder.symbols.known = dict(zip(activation.symbols, sizes, strict=True))
    for index, param in enumerate((*activation.function.params, *activation.captured)):
        name = identifier(param.name_hint or f"arg{index}")
        builder.values[id(param)] = _formal(builder, name, param.struct_info)
    for key, closure in activation.closures.items():
        builder.values[key] = LocalFunction(
            closure.function, closure.label, builder.values, builder.symbols.known, []
        )
    builder.step(_check_depth(local.label, builder.state), [])
    inputs = list(builder.params)
    result = builder.returned(activation.function)
    outputs: list[Buffer] = []
    info = activation.function.ret_struct_info
    target = _allocated(builder, builder.symbols, info, outputs, is_formal=True)
    if not _delivered(builder, result, target):
        raise NotNative(f"the result of {local.label} is not what it declares")
    plan = ArenaPlan(builder.lives(set()), is_own=True)
    body = _with_arena(builder.placed(plan), plan)
    state = builder.state
    params = [depth, state.floor, *sizes, *inputs, *outputs, state.pointers]
    activation.func = PrimFunc(params, body, attrs={"global_symbol": activation.symbol})
    activation.func.provenance = "host"


def _with_arena(body: Stmt, plan: ArenaPlan) -> Stmt:
    if plan.arena is None:
        return body
    arena = plan.arena
    body = DeclBuffer(arena, body)
    yes = IntImm(DataType("bool"), 1)
    return Allocate(arena.data, DataType("uint8"), list(arena.shape), yes, body, {ON_HEAP: True})


def _check_depth(label: str, state: State) -> Stmt:
    """Leave with an error where calls are nested too deep."""
    intrinsic = [StringImm("llvm.frameaddress.p0"), IntImm(DataType("int32"), 0)]
    frame = TirCall(DataType("handle"), "tir.call_llvm_intrin", intrinsic)
    address = TirCall(INT64, "tir.reinterpret", [frame])
    is_deep = op.logical_or(state.depth >= MAX_DEPTH, address < state.floor)
    return IfThenElse(is_deep, packed_call("vm.builtin.too_deep", [StringImm(label), state.depth]))


def _leaves(info: StructInfo | None, value: HostValue) -> list[Buffer | PrimExpr]:
    """What is passed for a value of that struct info, in the order of ``_formal``."""
    if isinstance(info, TensorStructInfo):
        tensor = expect(value, Buffer)
        extents = list(tensor.shape) if info.shape is None else []
        return [*[op.cast(INT64, extent) for extent in extents], tensor]
    if isinstance(info, PrimStructInfo):
        return [] if info.value is not None else [expect(value, PrimExpr)]
    if isinstance(info, TupleStructInfo):
        pairs = zip(info.fields, expect(value, list), strict=True)
        return [leaf for field, item in pairs for leaf in _leaves(field, item)]
    if isinstance(info, ShapeStructInfo):
        values = expect(value, Shape).values
        return [] if info.values is not None else [op.cast(INT64, extent) for extent in values]
    raise NotNative(f"an argument of a recursion that is a {type(info).__name__}")


def _formal(builder: HostBody, name: str, info: StructInfo | None) -> HostValue:
    """The parameters of a helper for a value of that struct info, and the value."""
    if isinstance(info, TensorStructInfo) and info.ndim >= 0:
        if info.shape is None:
            extents = _numbers(builder, name, info.ndim)
            info = TensorStructInfo(extents, info.dtype)
        return builder.native(builder.tensor(name, info))[0]
    if isinstance(info, PrimStructInfo):
        if info.value is not None:
            return builder.resolved([info.value])[0]
        return builder.native(TirVar(name, info.dtype))[0]
    if isinstance(info, TupleStructInfo):
        return [_formal(builder, f"{name}_{i}", field) for i, field in enumerate(info.fields)]
    if isinstance(info, ShapeStructInfo) and info.ndim >= 0:
        if info.values is not None:
            return Shape(builder.resolved(info.values))
        return Shape(_numbers(builder, name, info.ndim))
    raise NotNative(f"the argument {name} of a recursion is no tensor, number, shape or tuple")


def _numbers(builder: HostBody, name: str, count: int) -> list[PrimExpr]:
    return [builder.native(TirVar(f"{name}_{axis}", INT64))[0] for axis in range(count)]


def _allocated(
    builder: HostBody,
    symbols: HostSymbols,
    info: StructInfo | None,
    outputs: list[Buffer],
    is_formal: bool = False,
) -> HostValue:
    """The result of a call, or of a helper itself: new tensors, and what follows from symbols."""
    if isinstance(info, TupleStructInfo):
        return [_allocated(builder, symbols, field, outputs, is_formal) for field in info.fields]
    if any(var not in symbols.known for var in symbolic_vars(info)):
        raise NotNative(f"the shape of what {symbols.label} returns follows from no argument")
    if isinstance(info, TensorStructInfo) and isinstance(info.shape, ShapeExpr):
        known = TensorStructInfo(symbols.resolved(info.shape.values), info.dtype)
        tensor = (
            builder.tensor("result", known) if is_formal else builder.new_tensor(known, "result")
        )
        outputs.append(tensor)
        return tensor
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return symbols.resolved([info.value])[0]
    if isinstance(info, ShapeStructInfo) and info.values is not None:
        return Shape(symbols.resolved(info.values))
    raise NotNative(f"{symbols.label} calls itself and returns a value whose shape is not declared")


def _delivered(builder: HostBody, value: HostValue, target: HostValue) -> bool:
    """Copy the tensors of a result to where the caller wants them; False where they do not fit."""
    if isinstance(target, list):
        if not isinstance(value, list) or len(value) != len(target):
            return False
        pairs = zip(value, target, strict=True)
        return all(_delivered(builder, part, other) for part, other in pairs)
    if not isinstance(target, Buffer):
        return isinstance(value, type(target) if isinstance(target, Shape) else PrimExpr)
    if not isinstance(value, Buffer) or len(value.shape) != len(target.shape):
        return False
    if value.dtype != target.dtype:
        return False
    builder.copy(value, target)
    return True
