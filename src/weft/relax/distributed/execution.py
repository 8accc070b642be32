"""The error for distributed tensors, which cannot be executed yet."""

from __future__ import annotations

from typing import Any

from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.distributed.struct_info import DTensorStructInfo
from weft.relax.expr import Call, Constant, Function
from weft.support.errors import UnsupportedError
from weft.support.recursion import deep_recursion


def refuse_distributed(mod: IRModule, what: str) -> None:
    """Raise UnsupportedError if a graph of the module has such tensors; ``what`` would run it."""
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            refuse_distributed_function(var.name_hint, func, what)


@deep_recursion
def refuse_distributed_function(name: str, func: Function, what: str) -> None:
    """Raise UnsupportedError if a graph has such tensors; ``what`` would run it."""
    _Finder(f"{what}: {name}").visit(func)


class _Finder(Visitor):
    """Visits every place that may name a distributed tensor, and refuses it."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where

    def refuse(self, value: Any) -> None:
        raise UnsupportedError(
            f"{self.where}: {value} is for several devices, and weft runs programs on one: graphs "
            "of distributed tensors can be built, deduced, printed and read, not executed yet"
        )

    def visit_DTensorStructInfo(self, info: DTensorStructInfo) -> None:
        self.refuse(info)

    def visit_Function(self, func: Function) -> None:
        for param in func.params:
            self.visit(param.struct_info)
        self.visit(func.body)

    def visit_RelaxCall(self, call: Call) -> None:
        if isinstance(call.op, Op) and call.op.name.startswith("relax.dist."):
            self.refuse(call.op.name)
        self.visit(call.args)
        self.visit(call.sinfo_args)

    def visit_Constant(self, constant: Constant) -> None:
        self.visit(constant.struct_info)
