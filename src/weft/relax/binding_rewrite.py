"""DataflowBlockRewrite: edits of one dataflow block, binding by binding.

::

    rewriter = relax.DataflowBlockRewrite(block, func)
    rewriter.replace_all_uses(old, new)
    rewriter.remove_unused(old)
    mod = rewriter.mutate_irmodule(mod)

Nodes do not change: each edit makes a new block and a new function, which ``mutated_dfb`` and
``mutated_root_fn`` return.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.expr import RelaxExpr
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.analysis.bindings import all_bindings, name_to_binding, uses
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    RelaxLike,
    Var,
    VarBinding,
    as_relax_expr,
)
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.support.errors import IRTypeError, IRValueError


class _Blocks(PyExprVisitor):
    """The dataflow blocks of a function."""

    def __init__(self) -> None:
        self.blocks: list[DataflowBlock] = []

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        self.blocks.append(block)
        super().visit_dataflow_block_(block)


def _blocks(func: Function) -> list[DataflowBlock]:
    visitor = _Blocks()
    visitor.visit_expr(func)
    return visitor.blocks


class _Editor(PyExprMutator):
    """Replaces the block ``target`` by ``edited``, or variables by those in ``replaced``."""

    def __init__(
        self,
        target: DataflowBlock,
        edited: DataflowBlock | None = None,
        replaced: dict[Var, Var] | None = None,
    ) -> None:
        super().__init__()
        self.target, self.edited, self.replaced = target, edited, replaced or {}
        self.rewritten: BindingBlock = target

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        if block is not self.target:
            return super().visit_dataflow_block_(block)
        edited = self.edited
        self.rewritten = super().visit_dataflow_block_(block) if edited is None else edited
        return self.rewritten

    def visit_var_(self, op: Var) -> RelaxExpr:
        return super().visit_var_(self.replaced.get(op, op))


class DataflowBlockRewrite:
    """Edits a dataflow block of a function; see the module's docstring."""

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if not isinstance(dfb, DataflowBlock) or not isinstance(root_fn, Function):
            raise IRTypeError(
                "DataflowBlockRewrite: expected a DataflowBlock and the Function it is in, got "
                f"{type(dfb).__name__} and {type(root_fn).__name__}"
            )
        if not any(block is dfb for block in _blocks(root_fn)):
            raise IRValueError("DataflowBlockRewrite: the block is not in the function")
        self.dfb, self.root_fn, self.original = dfb, root_fn, root_fn

    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Replace every use of ``old_var`` in the function by ``new_var``."""
        editor = _Editor(self.dfb, replaced={old_var: new_var})
        self.root_fn = editor.visit_expr(self.root_fn)
        self.dfb = expect(editor.rewritten, DataflowBlock)

    def add_binding(self, binding: Binding) -> None:
        """Add a binding at the end of the block."""
        self._change(lambda bindings: [*bindings, binding])

    def add(self, expr: RelaxLike, name: str | None = None, is_dfvar: bool = False) -> None:
        """Bind an expression to a new variable (``tmp0`` ... if unnamed) at the end of the block.

        The variable is an output of the block unless ``is_dfvar``.
        """
        taken = name_to_binding(self.root_fn)
        if name is None:
            name = next(f"tmp{i}" for i in range(len(taken) + 1) if f"tmp{i}" not in taken)
        builder = BlockBuilder()
        builder.begin_dataflow_block()
        value = builder.inline_sequence(builder.normalize(as_relax_expr(expr)))
        before = builder.end_block().bindings
        kind = DataflowVar if is_dfvar else Var
        binding = VarBinding(kind(name, value.struct_info), value)
        self._change(lambda bindings: [*bindings, *before, binding])

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses.

        Raises IRValueError if something does, or if the block does not define it.
        """
        if not any(binding.var is var for binding in self.dfb.bindings):
            if allow_undef:
                return
            raise IRValueError(f"remove_unused: the block defines no {var.name_hint}")
        if var in uses(self.root_fn.body):
            users = [b.var.name_hint for b in all_bindings(self.root_fn) if var in uses(b.value)]
            raise IRValueError(
                f"remove_unused: {var.name_hint} is used by {', '.join(users[:5]) or 'the result'}"
            )
        self._change(lambda bindings: [b for b in bindings if b.var is not var])

    def remove_all_unused(self) -> None:
        """Remove every binding of the function that nothing uses, in all of its blocks."""
        names = {binding.var for binding in self.dfb.bindings}
        self.root_fn = remove_all_unused(self.root_fn)
        left = [b for b in _blocks(self.root_fn) if any(item.var in names for item in b.bindings)]
        self.dfb = left[0] if left else DataflowBlock([])

    def mutated_dfb(self) -> DataflowBlock:
        """The block as it is now."""
        return self.dfb

    def mutated_root_fn(self) -> Function:
        """The function as it is now."""
        return self.root_fn

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """The module in which the edited function replaces the original one."""
        for gvar, func in irmodule.functions.items():
            if func is self.original:
                edited = irmodule.clone()
                edited.update_func(gvar, self.root_fn)
                return edited
        raise IRValueError("mutate_irmodule: the module does not have the function")

    def _change(self, change: Callable[[list[Binding]], list[Binding]]) -> None:
        """Replace the block by one with the bindings that ``change`` returns for its own."""
        edited = DataflowBlock(change([*self.dfb.bindings]))
        self.root_fn = _Editor(self.dfb, edited).visit_expr(self.root_fn)
        self.dfb = edited
