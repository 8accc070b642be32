"""Axis separators of the parameters of fused functions.

A buffer with axis separators has several physical dimensions. The tensors of a graph do not say so;
only the PrimFuncs that take them do. FuseTIR asks here for the separators of each parameter.
"""

from __future__ import annotations

from weft.ir.expr import GlobalVar, IntImm
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.analysis.bindings import all_bindings
from weft.relax.expr import Call, Function, Tuple, Var
from weft.relax.op.base import CALLS_OF_KERNELS
from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc


def separators_of(buffer: Buffer) -> list[int]:
    """The axis separators of a buffer as numbers."""
    return [item.value for item in buffer.axis_separators if isinstance(item, IntImm)]


def separators_of_params(mod: IRModule, func: Function) -> dict[Var, list[int]]:
    """Parameter -> its axis separators in the first kernel that reads it."""
    separators: dict[Var, list[int]] = {}
    params = set(func.params)
    for binding in all_bindings(func):
        call = binding.value
        if not isinstance(call, Call) or call.op not in CALLS_OF_KERNELS:
            continue
        callee, args = mod[expect(call.args[0], GlobalVar)], call.args[1]
        if not isinstance(callee, PrimFunc) or not isinstance(args, Tuple):
            continue
        buffers = [callee.buffer_map[p] for p in callee.params if p in callee.buffer_map]
        for arg, buffer in zip(args.fields, buffers, strict=False):
            if isinstance(arg, Var) and arg in params:
                separators.setdefault(arg, separators_of(buffer))
    return separators


def are_stored_alike(first: Buffer, second: Buffer) -> bool:
    """Whether two buffers have the same axis separators."""
    return separators_of(first) == separators_of(second)
