"""PyExprVisitor and PyExprMutator: the functors that users subclass, with TVM's method names.

::

    @relax.expr_functor.mutator
    class Rewriter(relax.PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            ...
            return call

A visitor walks; a mutator rebuilds through its block builder ``builder_``, which keeps everything
in normal form: what ``visit_call_`` returns may hold nested calls. A node that does not change
stays the same object. The passes of weft use these too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar, overload

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.sharing import is_visited_once
from weft.relax.block_builder import BlockBuilder
from weft.relax.builder.normalize import LEAVES, collect_symbols, merged_blocks
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import erase_to_well_defined, struct_info_is_base_of
from weft.relax.ir.nested_calls import calls_to_bind
from weft.relax.struct_info import StructInfo
from weft.support.errors import IRTypeError
from weft.support.recursion import deep_recursion
from weft.support.span import Span

C = TypeVar("C", bound=type)

_METHODS: dict[type, str] = {
    Constant: "visit_constant_",
    Tuple: "visit_tuple_",
    DataflowVar: "visit_dataflow_var_",
    Var: "visit_var_",
    ShapeExpr: "visit_shape_expr_",
    ExternFunc: "visit_extern_func_",
    GlobalVar: "visit_global_var_",
    Function: "visit_function_",
    Call: "visit_call_",
    SeqExpr: "visit_seq_expr_",
    If: "visit_if_",
    Op: "visit_op_",
    TupleGetItem: "visit_tuple_getitem_",
    PrimValue: "visit_prim_value_",
    StringImm: "visit_string_imm_",
    DataTypeImm: "visit_data_type_imm_",
}


def visitor(visitor_cls: C) -> C:
    """Decorate a subclass of PyExprVisitor (TVM's spelling; the class is complete without)."""
    return _checked(visitor_cls, PyExprVisitor, "visitor")


def mutator(mutator_cls: C) -> C:
    """Decorate a subclass of PyExprMutator (TVM's spelling; the class is complete without)."""
    return _checked(mutator_cls, PyExprMutator, "mutator")


def _checked(cls: C, base: type, name: str) -> C:
    if not isinstance(cls, type) or not issubclass(cls, base):
        given = getattr(cls, "__name__", repr(cls))
        raise IRTypeError(f"@{name}: {given} must be a subclass of {base.__name__}")
    return cls


class _Functor:
    """Dispatch on the class of an expression; a subclass without a method gets its base's."""

    _dispatch: ClassVar[dict[type, str]] = dict(_METHODS)

    def _method(self, expr: RelaxExpr) -> Callable[[RelaxExpr], RelaxExpr]:
        """The method for the class of an expression."""
        name = self._dispatch.get(type(expr))
        if name is None:
            for base in type(expr).__mro__:
                if base in _METHODS:
                    name = self._dispatch[type(expr)] = _METHODS[base]
                    break
            else:
                raise IRTypeError(
                    f"{type(self).__name__}: expected a graph expression, got {type(expr).__name__}"
                )
        method: Callable[[RelaxExpr], RelaxExpr] = getattr(self, name)
        return method


class PyExprVisitor(_Functor):
    """Walks expressions, bindings and blocks for effect; override ``visit_call_`` and so on.

    A call that stands in many places of an expression is visited once.
    """

    _met: dict[int, RelaxExpr] | None = None
    """Calls of the outermost expression that were visited; None outside of one."""

    @deep_recursion
    def visit_expr(self, expr: RelaxExpr) -> None:
        """Visit an expression."""
        kind, met = type(expr), self._met
        if met is not None and id(expr) in met:
            return
        if kind is not SeqExpr and (met is not None or not is_visited_once(expr)):
            self._method(expr)(expr)
            if met is not None and is_visited_once(expr):
                met[id(expr)] = expr
            return
        self._met = None if kind is SeqExpr else {}  # statements are expressions of their own
        try:
            self._method(expr)(expr)
        finally:
            self._met = met

    def visit_binding(self, binding: Binding) -> None:
        """Visit a binding."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        elif isinstance(binding, VarBinding):
            self.visit_var_binding_(binding)

    def visit_binding_block(self, block: BindingBlock) -> None:
        """Visit a block."""
        if isinstance(block, DataflowBlock):
            self.visit_dataflow_block_(block)
        else:
            self.visit_binding_block_(block)

    def visit_var_def(self, var: Var) -> None:
        """Visit the variable that a binding or a parameter list defines."""
        if isinstance(var, DataflowVar):
            self.visit_dataflow_var_def_(var)
        else:
            self.visit_var_def_(var)

    def visit_constant_(self, op: Constant) -> None:
        """A constant."""

    def visit_tuple_(self, op: Tuple) -> None:
        """A tuple: its fields."""
        for item in op.fields:
            self.visit_expr(item)

    def visit_var_(self, op: Var) -> None:
        """A use of a variable."""

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        """A use of a dataflow variable: as any variable."""
        self.visit_var_(op)

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        """A shape."""

    def visit_extern_func_(self, op: ExternFunc) -> None:
        """A function registered at run time."""

    def visit_global_var_(self, op: GlobalVar) -> None:
        """A reference to a function of the module."""

    def visit_function_(self, op: Function) -> None:
        """A function: parameters, body."""
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_call_(self, op: Call) -> None:
        """A call: callee, arguments."""
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        """A sequence: blocks, body."""
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_if_(self, op: If) -> None:
        """A conditional: condition, both branches."""
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_op_(self, op: Op) -> None:
        """An operator."""

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        """A field of a tuple: the tuple."""
        self.visit_expr(op.tuple_value)

    def visit_prim_value_(self, op: PrimValue) -> None:
        """A scalar."""

    def visit_string_imm_(self, op: StringImm) -> None:
        """A string."""

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        """A data type."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """A binding: value, variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """A match_cast: value, variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        """A block: its bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        """A dataflow block: its bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> None:
        """The definition of a variable."""

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        """The definition of a dataflow variable: as of any variable."""
        self.visit_var_def_(var)

    def visit_span(self, span: Span | None) -> None:
        """A source position."""


class _Walk:
    """One expression that is rebuilt: what became of its calls, and which of them are bound."""

    def __init__(self, root: RelaxExpr) -> None:
        self.root = root
        self.known: dict[int, tuple[RelaxExpr, RelaxExpr]] = {}

    @functools.cached_property
    def to_bind(self) -> frozenset[int]:
        """The identities of the calls that are bound; asked for nested calls alone."""
        return frozenset([id(item) for item in calls_to_bind(self.root)])


class PyExprMutator(_Functor):
    """Rebuilds expressions in normal form; override ``visit_call_`` and so on.

    A call that stands in many places of an expression is rebuilt, and computed, once.
    """

    _walk: _Walk | None = None
    """What was rebuilt of the outermost expression; None outside of one."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._var_remap: dict[Var, RelaxExpr] = {}

    @overload
    def visit_expr(self, expr: Function) -> Function: ...
    @overload
    def visit_expr(self, expr: RelaxExpr) -> RelaxExpr: ...
    @deep_recursion
    def visit_expr(self, expr: RelaxExpr) -> RelaxExpr:
        """The rewritten expression, in normal form."""
        kind, walk = type(expr), self._walk
        if walk is not None and is_visited_once(expr):
            known = walk.known.get(id(expr))
            if known is None:
                known = expr, self._bound(expr, self._rebuilt(expr))
                walk.known[id(expr)] = known
            return known[1]
        if kind is not SeqExpr and not is_visited_once(expr):
            return self._rebuilt(expr)
        self._walk = None if kind is SeqExpr else _Walk(expr)
        try:
            return self._rebuilt(expr)
        finally:
            self._walk = walk

    def _bound(self, expr: RelaxExpr, value: RelaxExpr) -> RelaxExpr:
        """A variable that is the value, if the expression needs one and a block is open."""
        walk = self._walk
        if walk is None or id(expr) not in walk.to_bind or isinstance(value, (*LEAVES, Tuple)):
            return value
        return self.builder_.emit(value) if self.builder_.in_block() else value

    def _rebuilt(self, expr: RelaxExpr) -> RelaxExpr:
        rebuilt = self._method(expr)(expr)
        if isinstance(rebuilt, LEAVES):
            return rebuilt
        if isinstance(rebuilt, Function | SeqExpr) and rebuilt.struct_info is not None:
            if type(self).visit_function_ is PyExprMutator.visit_function_:
                return rebuilt
        return self.builder_.normalize(rebuilt)

    def visit_binding(self, binding: Binding) -> None:
        """Rewrite a binding and emit it."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        elif isinstance(binding, VarBinding):
            self.visit_var_binding_(binding)

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        """The rewritten block."""
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block_(block)
        return self.visit_binding_block_(block)

    def visit_var_def(self, var: Var) -> Var:
        """The variable that stands in the place of a defined one."""
        if isinstance(var, DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    @overload
    def visit_expr_post_order(self, expr: Call) -> Call: ...
    @overload
    def visit_expr_post_order(self, expr: RelaxExpr) -> RelaxExpr: ...
    @deep_recursion
    def visit_expr_post_order(self, expr: RelaxExpr) -> RelaxExpr:
        """The expression with its children rewritten: where an override starts from."""
        rebuilt: RelaxExpr = getattr(PyExprMutator, self._method(expr).__name__)(self, expr)
        return rebuilt if isinstance(rebuilt, LEAVES) else self.builder_.normalize(rebuilt)

    def visit_with_new_scope(
        self, expr: RelaxExpr, params: Sequence[Var] | None = None
    ) -> RelaxExpr:
        """The rewritten expression, in a scope of its own."""
        outer, self._walk = self._walk, None
        self.builder_.begin_scope(params)
        try:
            return self.builder_.normalize(self.visit_expr(expr))
        finally:
            self.builder_.end_scope()
            self._walk = outer

    def lookup_binding(self, var: RelaxExpr | None) -> Expr | None:
        """The value that a (rewritten) variable was bound to, or None."""
        return self.builder_.lookup_binding(var) if isinstance(var, Var) else None

    def set_var_remap(self, vid: Var, var: RelaxExpr) -> None:
        """Let uses of a variable become uses of ``var``; ``vid`` is ``old_var.vid``."""
        self._var_remap[vid] = var

    def get_var_remap(self, vid: Var) -> Any:
        """What stands for the variable now."""
        return self._var_remap.get(vid, vid)

    def with_struct_info(self, var: Var, struct_info: StructInfo | None) -> Var:
        """The variable if it has that struct info, else a new one of its name."""
        if struct_info is None or var.struct_info is struct_info:
            return var
        if var.struct_info is not None and var.struct_info == struct_info:
            return var
        return type(var)(var.name_hint, struct_info)

    # Expressions

    def visit_constant_(self, op: Constant) -> RelaxExpr:
        """A constant."""
        return op

    def visit_tuple_(self, op: Tuple) -> RelaxExpr:
        """A tuple with rewritten fields."""
        fields = self._all(op.fields)
        return op if fields is op.fields else Tuple(fields, span=op.span)

    def _all(self, items: Sequence[RelaxExpr]) -> Sequence[RelaxExpr]:
        """The rewritten items; the same sequence if none changes."""
        rewritten, changed = [], False
        for item in items:
            new = self.visit_expr(item)
            changed = changed or new is not item
            rewritten.append(new)
        return rewritten if changed else items

    def visit_var_(self, op: Var) -> RelaxExpr:
        """What stands for the variable."""
        return self._var_remap.get(op, op)

    def visit_dataflow_var_(self, op: DataflowVar) -> RelaxExpr:
        """What stands for the variable: as any variable."""
        return self.visit_var_(op)

    def visit_shape_expr_(self, op: ShapeExpr) -> RelaxExpr:
        """A shape."""
        values = [self.visit_prim_expr(value) for value in op.values]
        same = all(new is old for new, old in zip(values, op.values, strict=True))
        return op if same else ShapeExpr(values, span=op.span)

    def visit_extern_func_(self, op: ExternFunc) -> RelaxExpr:
        """A function registered at run time."""
        return op

    def visit_global_var_(self, op: GlobalVar) -> RelaxExpr:
        """A reference to a function of the module."""
        return op

    def visit_function_(self, op: Function) -> Any:
        """A function with rewritten parameters and body."""
        params = [self.visit_var_def(param) for param in op.params]
        same = all(new is old for new, old in zip(params, op.params, strict=True))
        body = self.visit_with_new_scope(op.body, params)
        if same and body is op.body:
            return op
        known = {**self.builder_.known_symbols(), **collect_symbols(params)}
        ret = erase_to_well_defined(body.struct_info, known)
        if op.ret_struct_info is not None and struct_info_is_base_of(ret, op.ret_struct_info):
            ret = op.ret_struct_info  # what was known of the result is known still
        return op.with_(
            params=op.params if same else type(op.params)(params), body=body, ret_struct_info=ret
        )

    def visit_call_(self, op: Call) -> Any:
        """A call with rewritten callee and arguments."""
        callee = self.visit_expr(op.op)
        args = self._all(op.args)
        if callee is op.op and args is op.args:
            return op
        return Call(callee, args, op.attrs, op.sinfo_args, op.span)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        """A sequence with rewritten blocks and body."""
        blocks: list[BindingBlock] = []
        for block in op.blocks:
            blocks.append(self.visit_binding_block(block))
        self.builder_.begin_binding_block()
        body = self.visit_expr(op.body)
        prologue = self.builder_.end_block()
        blocks.append(prologue)
        same = not prologue.bindings and all(
            new is old for new, old in zip(blocks, op.blocks, strict=False)
        )
        if same and body is op.body:
            return op
        return SeqExpr(merged_blocks(blocks), body, span=op.span)

    def visit_if_(self, op: If) -> RelaxExpr:
        """A conditional with everything rewritten."""
        cond = self.visit_expr(op.cond)
        then = self.visit_with_new_scope(op.true_branch)
        other = self.visit_with_new_scope(op.false_branch)
        return op.with_(cond=cond, true_branch=then, false_branch=other)

    def visit_op_(self, op: Op) -> RelaxExpr:
        """An operator."""
        return op

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        """A field of the rewritten tuple."""
        value = self.visit_expr(op.tuple_value)
        return op if value is op.tuple_value else TupleGetItem(value, op.index, span=op.span)

    def visit_prim_value_(self, op: PrimValue) -> RelaxExpr:
        """A scalar."""
        value = self.visit_prim_expr(op.value)
        return op if value is op.value else PrimValue(value)

    def visit_string_imm_(self, op: StringImm) -> RelaxExpr:
        """A string."""
        return op

    def visit_data_type_imm_(self, op: DataTypeImm) -> RelaxExpr:
        """A data type."""
        return op

    def visit_prim_expr(self, expr: PrimExpr) -> PrimExpr:
        """A scalar expression inside of a shape."""
        return expr

    # Bindings and blocks

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """Emit the rewritten binding; a variable whose struct info changed is replaced."""
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value and var.struct_info is not None:
            self.builder_.emit_normalized(binding)
            return
        self.reemit(binding, var, value)

    def reemit(self, binding: VarBinding, var: Var, value: RelaxExpr) -> None:
        """Emit ``var = value`` in the place of ``binding``."""
        value = self.builder_.inline_sequence(value)
        var = self.with_struct_info(var, value.struct_info)
        if var is not binding.var:
            self._var_remap[binding.var] = var
        self.builder_.emit_normalized(VarBinding(var, value, span=binding.span))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """Emit the rewritten match_cast."""
        value = self.visit_expr(binding.value)
        var = self.visit_var_def(binding.var)
        if var is not binding.var:
            self._var_remap[binding.var] = var
        self.builder_.emit_normalized(binding.with_(var=var, value=value))

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        """The block with rewritten bindings."""
        self.builder_.begin_binding_block()
        return self._finish_block(block)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        """The dataflow block with rewritten bindings."""
        self.builder_.begin_dataflow_block()
        return self._finish_block(block)

    def _finish_block(self, block: BindingBlock) -> BindingBlock:
        for binding in block.bindings:
            self.visit_binding(binding)
        rewritten = self.builder_.end_block()
        if len(rewritten.bindings) == len(block.bindings) and all(
            new is old for new, old in zip(rewritten.bindings, block.bindings, strict=True)
        ):
            return block
        return rewritten

    def visit_var_def_(self, var: Var) -> Var:
        """The variable itself."""
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Var:
        """The variable itself: as any variable."""
        return self.visit_var_def_(var)

    def visit_span(self, span: Span | None) -> Span | None:
        """A source position."""
        return span


class _PostOrder(PyExprVisitor):
    def __init__(self, function: Callable[[RelaxExpr], object]) -> None:
        self.function = function

    def visit_expr(self, expr: RelaxExpr) -> None:
        super().visit_expr(expr)
        self.function(expr)


def post_order_visit(expr: RelaxExpr, fvisit: Callable[[RelaxExpr], object]) -> None:
    """Call ``fvisit`` on every expression below ``expr``, operands first."""
    _PostOrder(fvisit).visit_expr(expr)
