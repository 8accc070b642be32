"""Canonical form of bindings: those that only rename go.

``y = x`` makes uses of y uses of x; an output that only renames a dataflow variable takes its
place (``lv = f(x); gv = lv`` becomes ``gv = f(x)``); a field of a tuple at hand is the field; a
match_cast to what is known already is a renaming.

The pass of that name uses it, and pattern rewriting.
"""

from __future__ import annotations

from typing import Any

from weft.relax.analysis.bindings import all_bindings
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import (
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator


class _Canonicalizer(PyExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self.outputs: dict[Var, Var] = {}
        self.local: set[Var] = set()

    def visible(self, expr: Any) -> bool:
        """Whether an expression may be used here: a dataflow variable only in its block."""
        return not isinstance(expr, DataflowVar) or expr in self.local

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        defined = {binding.var for binding in block.bindings}
        for binding in block.bindings:
            value = getattr(binding, "value", None)
            if (
                isinstance(binding, VarBinding)
                and not isinstance(binding.var, DataflowVar)
                and isinstance(value, DataflowVar)
                and value in defined
                and value not in self.outputs
            ):
                self.outputs[value] = binding.var
        outer, self.local = self.local, set()
        made = super().visit_dataflow_block_(block)
        self.local = outer
        return made

    def visit_binding(self, binding: Any) -> None:
        super().visit_binding(binding)
        self.local.add(self.get_var_remap(binding.var))

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        output = self.outputs.get(var)
        if output is None:
            return var
        self.set_var_remap(var.vid, output)
        return output

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Var):
            hides = isinstance(value, DataflowVar) and not isinstance(binding.var, DataflowVar)
            if value is binding.var:
                return
            if not hides:
                self.set_var_remap(binding.var.vid, value)
                return
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit(binding, var, value)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        if isinstance(value, Var) and value.struct_info == binding.struct_info:
            hides = isinstance(value, DataflowVar) and not isinstance(binding.var, DataflowVar)
            if not hides:
                self.set_var_remap(binding.var.vid, value)
                return
        super().visit_match_cast_(binding)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        made = super().visit_tuple_getitem_(op)
        value = self.lookup_binding(made.tuple_value)
        if isinstance(made.tuple_value, Tuple):
            value = made.tuple_value
        if isinstance(value, Tuple) and self.visible(value.fields[made.index]):
            return value.fields[made.index]
        return made

    def visit_tuple_(self, op: Tuple) -> Any:
        made = super().visit_tuple_(op)
        sources = [
            item
            for item in map(self.lookup_binding, made.fields)
            if isinstance(item, TupleGetItem)
        ]
        if not sources or len(sources) != len(made.fields):
            return made
        whole: Any = sources[0].tuple_value
        same = all(
            item.tuple_value is whole and item.index == index for index, item in enumerate(sources)
        )
        complete = whole.struct_info is not None and len(whole.struct_info.fields) == len(sources)
        return whole if same and complete and self.visible(whole) else made


def canonicalize_bindings(func: Function) -> Function:
    """The function without bindings that only rename."""
    count = len(all_bindings(func))
    while True:  # a renaming of a renaming shows only once the inner one is gone
        made: Function = _Canonicalizer().visit_expr(func)
        if made is func:
            return func
        func = remove_all_unused(made)
        fewer = len(all_bindings(func))
        if fewer >= count:
            return func
        count = fewer
