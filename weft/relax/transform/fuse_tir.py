"""FuseTIR: a graph function marked ``Primitive`` that calls PrimFuncs becomes one PrimFunc.

Before::

    @R.function
    def fused(x, w, b):            # attribute Primitive
        with R.dataflow():
            lv = R.call_tir(cls.dense, (x, w), ...)
            gv = R.call_tir(cls.add, (lv, b), ...)
            R.output(gv)
        return gv

After: ``fused`` is a PrimFunc over the buffers x, w, b and T_add; what ``lv`` was is an
``alloc_buffer`` of its root block; calls become ``R.call_tir(cls.fused, ...)``, and functions that
nothing uses any more go. It fuses no loops: that is the schedule's work. As TVM's pass of the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.attrs import Attrs
from weft.ir.expr import GlobalVar, IntImm
from weft.ir.functor import rewrite, substitute
from weft.ir.module import IRModule
from weft.ir.node import Map
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.ir.transform import PassContext
from weft.relax.analysis.bindings import all_bindings
from weft.relax.expr import (
    Call,
    Expr,
    Function,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.lattice import match_params, symbolic_vars, tensor_dims
from weft.relax.op.base import call_tir
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.dead_code_elimination import eliminate_dead_code
from weft.relax.transform.passes import make_module_pass
from weft.support.errors import UnsupportedError
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, Stmt, seq
from weft.tir.stmt_functor import renew_defs

Value = Any
"""What a graph variable stands for: a Buffer, or a tuple of Values."""


OWN_ATTRS: Final = frozenset(
    ("global_symbol", "op_pattern", "operator_name", "layout_free_buffers")
)
"""Attributes of a PrimFunc that say nothing about the function that it is fused into."""


class _Fuser:
    """Makes the PrimFunc of one Primitive function."""

    def __init__(self, mod: IRModule, name: str, func: Function) -> None:
        self.mod, self.name, self.func = mod, name, func
        self.values: dict[Var, Value] = {}
        self.inputs: list[Buffer] = []
        self.outputs: dict[int, Buffer] = {}
        self.allocated: list[Buffer] = []
        self.bodies: list[Stmt] = []
        self.scalars: dict[TirVar, None] = {}
        self.all_te = True
        self.callees: list[PrimFunc] = []
        self.annotations: dict[str, Any] = {}

    def fail(self, text: str) -> UnsupportedError:
        return UnsupportedError(f"FuseTIR: {self.name}: {text}")

    def fuse(self) -> PrimFunc:
        for param in self.func.params:
            self.values[param] = self.parameter(param.name_hint, param.struct_info)
        wanted = self.wanted_outputs()
        for binding in all_bindings(self.func):
            self.binding(binding, wanted)
        return self.finish(self.results())

    def parameter(self, name: str, info: StructInfo | None) -> Value:
        """The buffers of a parameter; fields of tuples are numbered."""
        if isinstance(info, TupleStructInfo):
            return tuple(
                [self.parameter(f"{name}_{i}", item) for i, item in enumerate(info.fields)]
            )
        if isinstance(info, ShapeStructInfo):
            return None
        if isinstance(info, PrimStructInfo) and info.value is not None:
            return None
        dims = tensor_dims(info)
        if dims is None or not isinstance(info, TensorStructInfo):
            raise self.fail(f"parameter {name}: expected a tensor of known shape, got {info}")
        buffer = decl_buffer(dims, info.dtype, name)
        self.inputs.append(buffer)
        return buffer

    def wanted_outputs(self) -> dict[Var, None]:
        """The variables whose buffers are outputs: the result, seen through aliases."""
        aliases = {
            binding.var: binding.value
            for binding in all_bindings(self.func)
            if isinstance(binding.value, Var | Tuple | TupleGetItem)
        }
        found: dict[Var, None] = {}
        todo: list[Any] = [self.func.body.body]
        while todo:
            expr = todo.pop(0)
            if isinstance(expr, Tuple):
                todo = [*expr.fields, *todo]
            elif isinstance(expr, TupleGetItem):
                todo.insert(0, expr.tuple_value)
            elif isinstance(expr, Var) and expr in aliases:
                todo.insert(0, aliases[expr])
            elif isinstance(expr, Var):
                found[expr] = None
        return found

    def binding(self, binding: Any, wanted: dict[Var, None]) -> None:
        value = binding.value
        if isinstance(value, Call):
            self.values[binding.var] = self.call(value, binding.var in wanted)
        elif isinstance(value, Var | Tuple | TupleGetItem) or isinstance(binding, MatchCast):
            self.values[binding.var] = self.value(value)
        else:
            raise self.fail(f"{binding.var.name_hint} is bound to a {type(value).__name__}")

    def value(self, expr: Any) -> Value:
        if isinstance(expr, Tuple):
            return tuple([self.value(item) for item in expr.fields])
        if isinstance(expr, TupleGetItem):
            return self.value(expr.tuple_value)[expr.index]
        if isinstance(expr, Var):
            return self.values[expr]
        raise self.fail(f"an argument is a {type(expr).__name__}; pass it as a parameter")

    def call(self, call: Call, is_output: bool) -> Value:
        if call.op is not Op.get("relax.call_tir"):
            name = getattr(call.op, "name", getattr(call.op, "name_hint", type(call.op).__name__))
            raise self.fail(f"expected only call_tir, got {name}; run LegalizeOps first")
        gvar, args = call.args[0], call.args[1]
        callee = self.mod[gvar]
        if not isinstance(callee, PrimFunc):
            raise self.fail(f"call_tir of {gvar.name_hint}, which is no PrimFunc")
        self.all_te = self.all_te and callee.provenance == "te"
        self.callees.append(callee)
        callee = renew_defs(callee)
        infos = flat_infos(call.sinfo_args[0])
        inputs = list(flat_buffers(self.value(args)))
        params = [param for param in callee.params if param in callee.buffer_map]
        outputs = [callee.buffer_map[param] for param in params[len(inputs) :]]
        if len(outputs) != len(infos):
            raise self.fail(
                f"call_tir of {gvar.name_hint}: {len(inputs)} inputs and {len(infos)} outputs for "
                f"{len(params)} buffers"
            )
        made = [
            decl_buffer(tensor_dims(info) or (), info.dtype, out.name, scope=out.scope())
            for info, out in zip(infos, outputs, strict=True)
        ]
        self.inline(callee, params, [*inputs, *made], call)
        for buffer in made:
            if is_output:
                self.outputs[id(buffer)] = buffer
            else:
                self.allocated.append(buffer)
        is_tuple = isinstance(call.sinfo_args[0], TupleStructInfo)
        return tuple(made) if is_tuple else made[0]

    def inline(self, callee: PrimFunc, params: Any, targets: list[Buffer], call: Call) -> None:
        """Append the callee's body with its parameters replaced."""
        mapping: dict[Any, Any] = {}
        for param, target in zip(params, targets, strict=True):
            buffer = callee.buffer_map[param]
            mapping[buffer] = target
            mapping[buffer.data] = target.data
            for dim, value in zip(buffer.shape, target.shape, strict=True):
                if isinstance(dim, TirVar):
                    mapping.setdefault(dim, value)
        scalars = [param for param in callee.params if param not in callee.buffer_map]
        given = list(call.args[2].values) if len(call.args) > 2 else []
        for scalar, value in zip(scalars, given, strict=True):
            mapping[scalar] = value
            for var in symbolic_vars(value):
                self.scalars[var] = None
        root = root_block(callee.body)
        if root is None:
            body = substitute(callee.body, mapping)
            self.bodies.append(with_regions(body, [*mapping.values()]))
            return
        allocated = [substitute(buffer, mapping) for buffer in root.alloc_buffers]
        for old, new in zip(root.alloc_buffers, allocated, strict=True):
            mapping[old] = new
        self.allocated.extend(allocated)
        for key, value in root.annotations.items():
            self.annotations.setdefault(key, substitute(value, mapping))
        self.bodies.append(substitute(root.body, mapping))

    def results(self) -> list[Buffer]:
        """The output buffers, each once; ``layout`` tells where they stand in the result."""
        value = self.value(self.func.body.body)
        found = list(dict.fromkeys(flat_buffers(value)))
        self.layout = layout_of(value, found)
        for buffer in found:
            if id(buffer) not in self.outputs:
                raise self.fail(f"the result {buffer.name} is a parameter")
        rest = [buffer for buffer in self.outputs.values() if buffer not in found]
        self.allocated.extend(rest)
        return found

    def finish(self, results: list[Buffer]) -> PrimFunc:
        buffers = [*self.inputs, *results]
        defined = [dim for buffer in buffers for dim in buffer.shape if isinstance(dim, TirVar)]
        for buffer in [*buffers, *self.allocated]:
            for var in symbolic_vars(buffer.shape):
                self.scalars[var] = None
        self.extra = [var for var in self.scalars if var not in defined]
        body = unique_block_names(seq(*self.bodies))
        root = Block([], [], [], "root", body, None, self.allocated, [], self.annotations)
        names = [f"p_{buffer.name}" for buffer in self.inputs]
        names += [f"p_output{index}" for index in range(len(results))]
        handles = [TirVar(name, "handle") for name in names]
        func = PrimFunc(
            [*handles, *self.extra],
            BlockRealize([], IntImm("bool", 1), root),
            None,
            Map(dict(zip(handles, buffers, strict=True))),
            Attrs({**shared_attrs(self.callees), "tir.noalias": True}),
        )
        func.provenance = "te" if self.all_te else None
        return func


def shared_attrs(callees: list[PrimFunc]) -> dict[str, Any]:
    """The attributes that hold for the fused function: those on which all its callees agree.

    Names, patterns and positions of parameters belong to a callee alone.
    """
    if not callees:
        return {}
    first, *others = callees
    return {
        key: value
        for key, value in first.attrs.items()
        if key not in OWN_ATTRS
        and all(key in f.attrs and structural_equal(f.attrs[key], value) for f in others)
    }


def root_block(body: Any) -> Block | None:
    """The root block of a PrimFunc's body, if it holds no more than a body and its buffers."""
    if not isinstance(body, BlockRealize) or body.block.iter_vars:
        return None
    block = body.block
    return None if block.match_buffers or block.init is not None else block


def with_regions(body: Any, buffers: list[Any]) -> Stmt:
    """A former root block says what it reads and writes, as every other block does."""
    if not isinstance(body, BlockRealize) or body.block.reads or body.block.writes:
        made: Stmt = body
        return made
    known = {item.data: item for item in buffers if isinstance(item, Buffer)}
    known.update({match.buffer.data: match.buffer for match in body.block.match_buffers})
    reads, writes, opaque = get_block_access_region(body.block, known)
    block = body.block.with_(reads=[*reads, *opaque], writes=[*writes, *opaque])
    return body.with_(block=block)


def flat_buffers(value: Value) -> Iterator[Buffer]:
    """The buffers in a value, tuples opened."""
    if isinstance(value, tuple):
        for item in value:
            yield from flat_buffers(item)
    elif value is not None:
        yield value


def layout_of(value: Value, buffers: list[Buffer]) -> Any:
    """A value with the position in ``buffers`` in the place of each buffer."""
    if isinstance(value, tuple):
        return tuple([layout_of(item, buffers) for item in value])
    if value is None:
        raise UnsupportedError("FuseTIR: a fused function returns a shape; return tensors only")
    return buffers.index(value)


def flat_infos(info: Any) -> list[Any]:
    """The tensors in a struct info, tuples opened."""
    if isinstance(info, TupleStructInfo):
        return [inner for item in info.fields for inner in flat_infos(item)]
    return [info]


def unique_block_names(body: Stmt) -> Stmt:
    """The statement with every block's name made unique: T_add, T_add_1 ..."""
    counts: dict[str, int] = {}

    def renamed(item: Any) -> Any:
        if not isinstance(item, Block):
            return None
        count = counts[item.name_hint] = counts.get(item.name_hint, -1) + 1
        return item.with_(name_hint=f"{item.name_hint}_{count}") if count else None

    made: Stmt = rewrite(body, renamed)
    return made


@dataclass(frozen=True)
class Fused:
    """A Primitive function's PrimFunc, as its calls need to know it."""

    gvar: GlobalVar
    func: Function
    extra: list[TirVar]
    """Symbols that are passed by value."""
    layout: Any
    """The result as nested tuples of positions among the outputs."""


def place_infos(layout: Any, info: Any, found: dict[int, StructInfo]) -> None:
    """Enter the struct info of each output, from that of the whole result."""
    if isinstance(layout, tuple):
        for item, field in zip(layout, info.fields, strict=True):
            place_infos(item, field, found)
    else:
        found[layout] = info


class _Rewriter(PyExprMutator):
    """Turns calls of fused functions into call_tir."""

    def __init__(self, fused: dict[str, Fused]) -> None:
        super().__init__()
        self.fused = fused

    def visit_call_(self, op: Call) -> Any:
        call = self.visit_expr_post_order(op)
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in self.fused:
            return call
        found = self.fused[call.op.name_hint]
        args: list[Expr] = []
        for arg in call.args:
            args.extend(self.tensors(arg))
        infos = [arg.struct_info for arg in call.args]
        symbols = match_params([param.struct_info for param in found.func.params], infos)
        tir_vars = ShapeExpr([symbols[var] for var in found.extra]) if found.extra else None
        outputs: dict[int, StructInfo] = {}
        place_infos(found.layout, call.struct_info, outputs)
        out = [outputs[index] for index in range(len(outputs))]
        made = call_tir(found.gvar, args, out[0] if len(out) == 1 else out, tir_vars)
        if found.layout == (0 if len(out) == 1 else tuple(range(len(out)))):
            return made
        return self.rebuilt(found.layout, self.builder_.emit(made), len(out))

    def rebuilt(self, layout: Any, var: Var, count: int) -> Expr:
        """The result of the fused function from the outputs of the PrimFunc."""
        if isinstance(layout, tuple):
            return Tuple([self.rebuilt(item, var, count) for item in layout])
        return var if count == 1 else self.builder_.emit(TupleGetItem(var, layout))

    def tensors(self, arg: Any) -> list[Expr]:
        """The tensors of an argument; shapes are passed by symbols."""
        info = arg.struct_info
        if isinstance(info, ShapeStructInfo | PrimStructInfo):
            return []
        if not isinstance(info, TupleStructInfo):
            return [arg]
        if isinstance(arg, Tuple):
            return [item for field in arg.fields for item in self.tensors(field)]
        made: list[Expr] = []
        for index in range(len(info.fields)):
            made.extend(self.tensors(self.builder_.emit(TupleGetItem(arg, index))))
        return made


def fuse_tir(mod: IRModule, ctx: PassContext) -> IRModule:  # noqa: ARG001 - a pass
    """The module with its Primitive functions fused."""
    fused: dict[str, Fused] = {}
    functions: dict[Any, Any] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and bool(func.attrs.get("Primitive", 0)):
            fuser = _Fuser(mod, gvar.name_hint, func)
            made = fuser.fuse()
            new_gvar = GlobalVar(gvar.name_hint)
            functions[new_gvar] = made
            fused[gvar.name_hint] = Fused(new_gvar, func, fuser.extra, fuser.layout)
        else:
            functions[gvar] = func
    if not fused:
        return mod
    for gvar, func in functions.items():
        if isinstance(func, Function):
            functions[gvar] = _Rewriter(fused).visit_expr(func)
    result = IRModule(functions, None, mod.attrs, mod.global_infos)
    return eliminate_dead_code(result)


def FuseTIR() -> Any:  # noqa: N802 - TVM's name
    """The pass that makes one PrimFunc of each Primitive function."""
    return make_module_pass("FuseTIR", fuse_tir)

