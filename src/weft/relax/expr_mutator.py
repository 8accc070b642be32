"""PyExprMutator: rebuilds a graph; one method for each class of expression, with TVM's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

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
from weft.relax.expr_visitor import ExprDispatch
from weft.relax.ir.lattice import erase_to_well_defined, struct_info_is_base_of
from weft.relax.ir.nested_calls import calls_to_bind
from weft.relax.struct_info import StructInfo
from weft.support.lazy_property import lazy_property
from weft.support.recursion import deep_recursion
from weft.support.span import Span


class _Walk:
    """The state while one expression is rebuilt: results so far, and which calls get a variable."""

    def __init__(self, root: RelaxExpr) -> None:
        self.root = root
        self.known: dict[int, tuple[RelaxExpr, RelaxExpr]] = {}

    @lazy_property
    def to_bind(self) -> frozenset[int]:
        """The ids of the calls that are bound to a variable; computed only for nested calls."""
        return frozenset([id(item) for item in calls_to_bind(self.root)])


class PyExprMutator(ExprDispatch):
    """Rebuilds expressions in normal form; override ``visit_call_`` and so on.

    A call that occurs in many places of an expression is rebuilt once, and bound to a variable so
    that it is also computed once.
    """

    _walk: _Walk | None = None
    """The state of the outermost expression that is being rebuilt; None if there is none."""

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
        """``value``; or a variable bound to it, if ``expr`` needs one and a block is open."""
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
        """The variable that replaces a newly defined one."""
        if isinstance(var, DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    @overload
    def visit_expr_post_order(self, expr: Call) -> Call: ...
    @overload
    def visit_expr_post_order(self, expr: RelaxExpr) -> RelaxExpr: ...
    @deep_recursion
    def visit_expr_post_order(self, expr: RelaxExpr) -> RelaxExpr:
        """The expression with rewritten children. An overriding method often calls this first."""
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
        """Replace the uses of a variable by ``var``; ``vid`` is ``old_var.vid``."""
        self._var_remap[vid] = var

    def get_var_remap(self, vid: Var) -> Any:
        """The replacement of the variable."""
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
        """The replacement of the variable."""
        return self._var_remap.get(op, op)

    def visit_dataflow_var_(self, op: DataflowVar) -> RelaxExpr:
        """The replacement of the dataflow variable; by default as for any variable."""
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

    def visit_function_(self, op: Function) -> RelaxExpr:
        """A function with rewritten parameters and body."""
        params = [self.visit_var_def(param) for param in op.params]
        same = all(new is old for new, old in zip(params, op.params, strict=True))
        body = self.visit_with_new_scope(op.body, params)
        if same and body is op.body:
            return op
        known = {**self.builder_.known_symbols(), **collect_symbols(params)}
        ret = erase_to_well_defined(body.struct_info, known)
        if op.ret_struct_info is not None and struct_info_is_base_of(ret, op.ret_struct_info):
            ret = op.ret_struct_info  # the old annotation is more precise and still true
        return op.with_(
            params=op.params if same else type(op.params)(params), body=body, ret_struct_info=ret
        )

    def visit_call_(self, op: Call) -> RelaxExpr:
        """A call with rewritten callee and arguments."""
        callee = self.visit_expr(op.op)
        args = self._all(op.args)
        if callee is op.op and args is op.args:
            return op
        return Call(callee, args, op.attrs, op.sinfo_args, op.span)

    def visit_seq_expr_(self, op: SeqExpr) -> RelaxExpr:
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

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelaxExpr:
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
        """Emit ``var = value`` instead of ``binding``."""
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
