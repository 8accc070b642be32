"""Normal form: every argument of a call is a leaf, every expression has struct info.

The block builder uses ``Normalizer``: a nested call becomes a binding of the block under
construction (A-normal form), and struct info is inferred by the operator's rule or from the
callee's signature. An expression that is in normal form already stays the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.ir.sharing import post_order_of
from weft.relax.distributed.sharding import infer_operator
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import (
    combined,
    defining_vars,
    derive_call_ret_struct_info,
    erase_to_well_defined,
    struct_info_lca,
    symbolic_vars,
)
from weft.relax.struct_info import ObjectStructInfo, StructInfo
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir.expr import Var as TirVar

LEAVES = (
    Var, Constant, ShapeExpr, GlobalVar, ExternFunc, Op, PrimValue, StringImm, DataTypeImm,
)  # fmt: skip


class Scopes(Protocol):
    """The methods of the block builder that the normaliser calls."""

    def in_block(self) -> bool:
        """Whether bindings can be emitted now."""

    def emit(self, expr: RelaxExpr, name_hint: str = "") -> Var:
        """Bind an expression in the current block."""

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Open a scope of variables."""

    def end_scope(self) -> None:
        """Close it."""

    def begin_binding_block(self) -> None:
        """Open a block."""

    def begin_dataflow_block(self) -> None:
        """Open a dataflow block."""

    def end_block(self) -> BindingBlock:
        """Close the block."""

    def emit_normalized(self, binding: Binding) -> Var:
        """Add a binding as it is."""

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value of a variable."""

    def known_symbols(self, skip: int = 0) -> dict[TirVar, PrimExpr]:
        """The symbolic variables in scope, mapped to themselves, without ``skip`` inner scopes."""

    def global_info(self, gvar: GlobalVar) -> StructInfo | None:
        """The struct info of a function of the module."""


def is_leaf(expr: object) -> bool:
    """Whether the expression may stand as an argument."""
    return isinstance(expr, LEAVES)


class Normalizer:
    """Brings expressions into normal form through a block builder."""

    def __init__(self, builder: Scopes) -> None:
        self.builder = builder
        self.normal: set[RelaxExpr] = set()
        self.bound: dict[RelaxExpr, RelaxExpr] | None = None
        """Argument -> its normal form, so that an object used twice is bound once."""

    def visit(self, expr: RelaxExpr) -> RelaxExpr:
        """The expression in normal form.

        ``self.normal`` remembers results, so that they are not walked again: the builder normalises
        each part of a function when it is emitted, and then the whole function.
        """
        if isinstance(expr, LEAVES):
            return self.leaf(expr)
        if expr in self.normal:
            return expr
        outermost = self.bound is None
        if outermost:
            self.bound = {}
        try:
            normal = self.handler(expr)(self, expr)
        finally:
            if outermost:
                self.bound = None
        if normal.struct_info is not None and not _has_unknown_callee(normal):
            self.normal.add(normal)
        return normal

    def handler(self, expr: RelaxExpr) -> Handler:
        """The method for an expression that is no leaf."""
        handler = _HANDLERS.get(type(expr))
        if handler is None:
            for base in type(expr).__mro__:
                handler = _HANDLERS.get(base)
                if handler is not None:
                    break
            else:
                raise wrong_type("normalize: expected a graph expression", expr)
        return handler

    def leaf(self, expr: RelaxExpr) -> RelaxExpr:
        if isinstance(expr, GlobalVar) and expr.struct_info is None:
            expr.struct_info = self.builder.global_info(expr)
        return expr

    def argument(self, arg: RelaxExpr) -> RelaxExpr:
        """A leaf or a tuple of leaves for an argument; an object used twice gives it twice."""
        if isinstance(arg, LEAVES):
            return self.leaf(arg)
        bound = self.bound if self.bound is not None else {}
        if arg not in bound:
            value = self.visit(arg)
            is_argument = isinstance(value, LEAVES) or isinstance(value, Tuple)
            bound[arg] = value if is_argument else self.bind(value)
        return bound[arg]

    def leaf_argument(self, arg: RelaxExpr) -> RelaxExpr:
        """A leaf for an argument; a tuple is bound to a variable, too."""
        value = self.argument(arg)
        return self.bind(value) if isinstance(value, Tuple) else value

    def bind(self, expr: RelaxExpr) -> Var:
        if not self.builder.in_block():
            raise IRValueError(
                "normalize: a nested call needs a binding, but no block is open; emit it in a "
                "function or normalise the whole function"
            )
        return self.builder.emit(expr)

    def sequence(
        self, items: Sequence[RelaxExpr], convert: Callable[[RelaxExpr], RelaxExpr]
    ) -> Sequence[RelaxExpr]:
        normal_items, changed = [], False
        for item in items:
            new = convert(item)
            changed = changed or new is not item
            normal_items.append(new)
        return normal_items if changed else items

    def call(self, call: Call) -> Call:
        op = call.op if isinstance(call.op, LEAVES) else self.argument(call.op)
        op = self.leaf(op)
        args = self.sequence(call.args, self.argument)
        if op is not call.op or args is not call.args:
            call = Call(op, args, call.attrs, call.sinfo_args, call.span)
        if call.struct_info is None:
            call.struct_info = infer_call(call, self.builder)
        return call

    def tuple(self, expr: Tuple) -> Tuple:
        fields = self.sequence(expr.fields, self.argument)
        if fields is expr.fields and expr.struct_info is not None:
            return expr
        return Tuple(fields, span=expr.span)

    def tuple_item(self, expr: TupleGetItem) -> TupleGetItem:
        value = self.argument(expr.tuple_value)
        if value is expr.tuple_value and expr.struct_info is not None:
            return expr
        item = TupleGetItem(value, expr.index, span=expr.span)
        if item.struct_info is None:
            item.struct_info = ObjectStructInfo()
        return item

    def condition(self, expr: If) -> If:
        cond = self.leaf_argument(expr.cond)
        then, other = self.branch(expr.true_branch), self.branch(expr.false_branch)
        choice = expr.with_(cond=cond, true_branch=then, false_branch=other)
        if choice.struct_info is None:
            choice.struct_info = self.visible(struct_info_lca(then.struct_info, other.struct_info))
        return choice

    def branch(self, expr: RelaxExpr) -> SeqExpr:
        """An expression as a sequence whose body is a leaf, in a scope of its own."""
        self.builder.begin_scope()
        try:
            if not isinstance(expr, SeqExpr):
                expr = SeqExpr([], expr)
            return self.seq(expr)
        finally:
            self.builder.end_scope()

    def seq(self, expr: SeqExpr) -> SeqExpr:
        """A sequence; its calls are bound in its own blocks, not in the block around it."""
        around, self.bound = self.bound, None
        try:
            return self.own_blocks(expr)
        finally:
            self.bound = around

    def own_blocks(self, expr: SeqExpr) -> SeqExpr:
        blocks = self.blocks(expr.blocks)
        self.builder.begin_binding_block()
        body = self.visit(expr.body)
        if not isinstance(body, LEAVES) and not _is_plain(body):
            body = self.builder.emit(body, "gv")
        extra = self.builder.end_block()
        if extra.bindings:
            blocks = [*blocks, extra]
        flat = merged_blocks(blocks)
        if flat is expr.blocks and body is expr.body and expr.struct_info is not None:
            return expr
        return SeqExpr(flat, body, span=expr.span)

    def blocks(self, blocks: Sequence[BindingBlock]) -> Sequence[BindingBlock]:
        """The blocks in normal form; the same sequence if nothing changes."""
        normal = [self.block(block) for block in blocks]
        if all(len(new) == 1 and new[0] is old for new, old in zip(normal, blocks, strict=True)):
            return blocks
        return [block for new in normal for block in new]

    def block(self, block: BindingBlock) -> list[BindingBlock]:
        """The block in normal form, as several blocks if a value in it holds dataflow blocks.

        A value that is a sequence is flattened into the block. A plain block is split around the
        dataflow blocks of such a sequence; a dataflow block takes in all bindings of the sequence,
        since a block after it could not see its variables.
        """
        done: list[BindingBlock] = []
        self.begin(block)
        for binding in block.bindings:
            value = self.visit(binding.value)
            while isinstance(value, SeqExpr):
                for inner in value.blocks:
                    if isinstance(inner, DataflowBlock) and not isinstance(block, DataflowBlock):
                        done += [self.builder.end_block(), inner]
                        self.begin(block)
                    else:
                        for item in inner.bindings:
                            self.builder.emit_normalized(item)
                value = value.body
            self.binding(binding, value)
        done.append(self.builder.end_block())
        if len(done) > 1:
            return done
        [normal] = done
        same = len(normal.bindings) == len(block.bindings) and all(
            new is old for new, old in zip(normal.bindings, block.bindings, strict=True)
        )
        return [block if same else normal]

    def begin(self, block: BindingBlock) -> None:
        """Open a block of the same kind."""
        if isinstance(block, DataflowBlock):
            self.builder.begin_dataflow_block()
        else:
            self.builder.begin_binding_block()

    def binding(self, binding: Binding, value: RelaxExpr) -> None:
        if isinstance(binding, VarBinding) and binding.var.struct_info is None:
            binding.var.struct_info = value.struct_info
        self.builder.emit_normalized(binding.with_(value=value))

    def function(self, func: Function) -> Function:
        self.builder.begin_scope(func.params)
        try:
            body = func.body if isinstance(func.body, SeqExpr) else SeqExpr([], func.body)
            body = self.seq(body)
            ret = func.ret_struct_info
            if ret is None or isinstance(ret, ObjectStructInfo):
                ret = self.visible(body.struct_info, func.params)
        finally:
            self.builder.end_scope()
        if body is func.body and ret is func.ret_struct_info:
            return func
        return func.with_(body=body, ret_struct_info=ret)

    def visible(self, info: StructInfo, params: Sequence[Var] | None = None) -> StructInfo:
        """The info without the symbols that are not visible in the open scopes.

        With ``params``: the info as seen from outside of the innermost function, where only the
        symbols of its parameters, and shapes that are parameters, are known.
        """
        if params is None:
            if not symbolic_vars(info):
                return info
            return erase_to_well_defined(info, self.builder.known_symbols())
        known = {**self.builder.known_symbols(skip=1), **collect_symbols(params)}
        return erase_to_well_defined(info, known, {param: param for param in params})


def _has_unknown_callee(expr: RelaxExpr) -> bool:
    """Whether an expression calls a function that the module does not have yet."""
    return isinstance(expr, Call) and isinstance(expr.op, GlobalVar) and expr.op.struct_info is None


def _is_plain(expr: RelaxExpr) -> bool:
    """Whether an expression is a (nested) tuple of leaves, which may be the value of a sequence."""
    return isinstance(expr, Tuple) and all(
        isinstance(item, (Tuple, *LEAVES)) for item in post_order_of(expr, _fields)
    )


def _fields(expr: RelaxExpr) -> Sequence[RelaxExpr]:
    return expr.fields if isinstance(expr, Tuple) else ()


def merged_blocks(blocks: Sequence[BindingBlock]) -> Sequence[BindingBlock]:
    """The blocks without empty ones, neighbours of one kind joined; the same if nothing changes."""
    runs: list[list[BindingBlock]] = []
    for block in blocks:
        if not block.bindings:
            continue
        if runs and type(runs[-1][0]) is type(block):
            runs[-1].append(block)
        else:
            runs.append([block])
    if len(runs) == len(blocks) and type(blocks) is not list:
        return blocks
    return [run[0] if len(run) == 1 else _joined(run) for run in runs]


def _joined(run: list[BindingBlock]) -> BindingBlock:
    return type(run[0])([binding for block in run for binding in block.bindings])


def infer_call(call: Call, builder: object = None) -> StructInfo:
    """The struct info of a call in normal form.

    An operator's own rule takes the call; the rule that a user registers under TVM's name
    ``FInferStructInfo`` takes the call and the builder.
    """
    op = call.op
    if isinstance(op, Op):
        rule = op.get_attr("infer_struct_info")
        if rule is None:
            given = op.get_attr("FInferStructInfo")
            if given is not None:
                return _checked(op, given(call, builder))
            if call.sinfo_args:
                return combined(call.sinfo_args)
            raise IRTypeError(
                f"{op.name} has no struct-info rule; register one: "
                f"weft.ir.register_op_attr({op.name!r}, 'FInferStructInfo', rule)"
            )
        return _checked(op, infer_operator(call, rule))
    if call.sinfo_args:
        return combined(call.sinfo_args)
    info = op.struct_info
    return ObjectStructInfo() if info is None else derive_call_ret_struct_info(info, call)


def _checked(op: Op, info: object) -> StructInfo:
    if not isinstance(info, StructInfo):
        kind = type(info).__name__
        raise IRTypeError(f"{op.name}: its struct-info rule gave {kind}; expected a StructInfo")
    return info


def collect_symbols(params: Sequence[Var] | None) -> dict[TirVar, PrimExpr]:
    """The symbolic variables that parameters define, each mapped to itself."""
    symbols: dict[TirVar, PrimExpr] = {}
    for param in params or ():
        if param.struct_info is not None:
            for var in defining_vars(param.struct_info):
                symbols[var] = var
    return symbols


Handler = Callable[[Normalizer, Any], RelaxExpr]
"""(normaliser, expression of the class that it handles) -> the expression in normal form."""

_HANDLERS: dict[type, Handler] = {
    Call: Normalizer.call,
    Tuple: Normalizer.tuple,
    TupleGetItem: Normalizer.tuple_item,
    If: Normalizer.condition,
    SeqExpr: Normalizer.seq,
    Function: Normalizer.function,
}
