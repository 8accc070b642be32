"""SplitLayoutRewritePreproc: copies of weights to other layouts become PrimFuncs of their own.

Before: ``y = call_tir(f, (x, w))``, where ``f`` first copies ``w`` to a local buffer with another
layout, in a block with the annotation ``meta_schedule.layout_rewrite_preproc``, and then computes
with that buffer. After:
``lv = call_tir(f_weight_prepack, (w,)); y = call_tir(f_prepacked, (x, lv))``. The first call
depends on weights only, so it can run before inference (LiftTransformParams, FoldConstant).

A PrimFunc stays as it is if its computation also reads the weight itself, if blocks of both kinds
are in one loop nest, or if the new layout has symbolic extents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.functor import Mutator, collect
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.transform import Sequential, define_module_pass
from weft.relax.expr import Call, Tuple, TupleGetItem
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.base import CALL_TIR
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.graph.dead_code_elimination import DeadCodeElimination
from weft.relax.transform.passes import mutate_module
from weft.te.primfunc import LAYOUT_FREE_BUFFERS, LAYOUT_REWRITE_PREPROC
from weft.tir.buffer import Buffer
from weft.tir.byte_pairs import EXACT_BYTE_PAIRS
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, SeqStmt, Stmt
from weft.tir.stmt_functor import renew_defs


@dataclass(frozen=True)
class _Rewrite:
    """The index of a parameter, and the buffers that hold it in the old and the new layout."""

    index: int
    before: Buffer
    after: Buffer


@dataclass(frozen=True)
class _Split:
    """The two PrimFuncs that one is split into, and the parameters that the first one copies."""

    prepack: PrimFunc
    compute: PrimFunc
    rewrites: list[_Rewrite]


def _split(func: PrimFunc) -> _Split | None:
    """Split a PrimFunc; None if it copies no parameters or cannot be split."""
    root = func.body.block if isinstance(func.body, BlockRealize) else None
    if root is None or not isinstance(root.body, SeqStmt):
        return None
    first: list[Stmt] = []
    second: list[Stmt] = []
    for stmt in root.body.seq:
        marks = {_is_marked(block) for block in collect(stmt, Block)}
        if len(marks) != 1:
            return None
        (first if marks == {True} else second).append(stmt)
    rewrites = _rewrites(func, first) if second else None
    if not rewrites:
        return None
    used = {buffer for stmt in second for buffer in collect(stmt, Buffer)}
    if any(rewrite.before in used for rewrite in rewrites):
        return None
    return _Split(_prepack(func, first, rewrites), _compute(func, root, second, rewrites), rewrites)


def _is_marked(block: Block) -> bool:
    value: Any = dict(block.annotations or {}).get(LAYOUT_REWRITE_PREPROC)
    return bool(value.value if isinstance(value, IntImm) else value)


def _rewrites(func: PrimFunc, stmts: list[Stmt]) -> list[_Rewrite] | None:
    """The copies of parameters that the marked blocks do; None if they do anything else."""
    params = [func.buffer_map.get(param) for param in func.params]
    rewrites: dict[int, _Rewrite] = {}
    for block in (block for stmt in stmts for block in collect(stmt, Block)):
        if len(block.reads) != 1 or len(block.writes) != 1:
            return None
        before, after = block.reads[0].buffer, block.writes[0].buffer
        index = next((i for i, buffer in enumerate(params) if buffer is before), None)
        if index is None or index in rewrites or any(buffer is after for buffer in params):
            return None
        if any(constant_value(extent) is None for extent in after.shape):
            return None
        rewrites[index] = _Rewrite(index, before, after)
    return [rewrites[index] for index in sorted(rewrites)]


class _Unmark(Mutator):
    def visit_Block(self, block: Block) -> Block:
        rest = {k: v for k, v in (block.annotations or {}).items() if k != LAYOUT_REWRITE_PREPROC}
        return self.visit_default(block).with_(annotations=rest)


def _prepack(func: PrimFunc, stmts: list[Stmt], rewrites: list[_Rewrite]) -> PrimFunc:
    """The PrimFunc that copies the weights to their new layouts."""
    sources = {func.params[item.index]: item.before for item in rewrites}
    results = {
        type(p)(item.after.name, p.dtype): item.after
        for p, item in zip(sources, rewrites, strict=True)
    }
    body = _root([_Unmark().visit(stmt) for stmt in stmts], [])
    prepack = func.with_(
        params=[*sources, *results],
        buffer_map={**sources, **results},
        body=body,
        attrs=_attrs(func, "_weight_prepack"),
    )
    return renew_defs(prepack)


def _compute(func: PrimFunc, root: Block, stmts: list[Stmt], rewrites: list[_Rewrite]) -> PrimFunc:
    """The PrimFunc that computes with the weights in their new layouts."""
    buffers = dict(func.buffer_map.items())
    for item in rewrites:
        buffers[func.params[item.index]] = item.after
    moved = {item.after for item in rewrites}
    body = _root(stmts, [buffer for buffer in root.alloc_buffers if buffer not in moved])
    return renew_defs(func.with_(buffer_map=buffers, body=body, attrs=_attrs(func, "_prepacked")))


def _root(stmts: list[Stmt], allocated: list[Buffer]) -> BlockRealize:
    body = stmts[0] if len(stmts) == 1 else SeqStmt(stmts)
    block = Block([], [], [], "root", body, None, allocated)
    return BlockRealize([], IntImm("bool", 1), block)


_OF_OLD_LAYOUTS: Final = (LAYOUT_FREE_BUFFERS, EXACT_BYTE_PAIRS)
"""Attributes that are about the weights as they were."""


def _attrs(func: PrimFunc, suffix: str) -> dict[str, object]:
    attrs = {k: v for k, v in func.attrs.items() if k not in _OF_OLD_LAYOUTS}
    if "global_symbol" in attrs:
        attrs["global_symbol"] = f"{attrs['global_symbol']}{suffix}"
    return attrs


class _Splitter(PyExprMutator):
    def __init__(self, mod: IRModule, splits: dict[GlobalVar, _Split]) -> None:
        super().__init__(mod)
        self.splits = splits

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        if call.op is not CALL_TIR:
            return call
        kernel, operands = call.args[:2]
        if not isinstance(kernel, GlobalVar) or kernel not in self.splits:
            return call
        split = self.splits[kernel]
        name, args = kernel.name_hint, list(expect(operands, Tuple).fields)
        prepack = self.builder_.add_func(split.prepack, f"{name}_weight_prepack")
        compute = self.builder_.add_func(split.compute, f"{name}_prepacked")
        weights = Tuple([args[item.index] for item in split.rewrites])
        infos: list[StructInfo] = [
            TensorStructInfo(item.after.shape, item.after.dtype) for item in split.rewrites
        ]
        out = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
        packed = self.builder_.emit(Call(CALL_TIR, [prepack, weights], None, [out]))
        for position, item in enumerate(split.rewrites):
            args[item.index] = packed if len(infos) == 1 else TupleGetItem(packed, position)
        rest = [compute, Tuple(args), *call.args[2:]]
        return self.builder_.emit(Call(CALL_TIR, rest, call.attrs, call.sinfo_args))


def _split_kernels(mod: IRModule) -> IRModule:
    splits = {
        gvar: split
        for gvar, func in mod.functions.items()
        if isinstance(func, PrimFunc) and (split := _split(func)) is not None
    }
    return mutate_module(mod, _Splitter(mod, splits)) if splits else mod


def SplitLayoutRewritePreproc() -> Sequential:  # noqa: N802 - as TVM
    """Split PrimFuncs that copy weights to other layouts; remove those without calls."""
    split = define_module_pass("SplitLayoutRewritePreproc", _split_kernels)()
    return Sequential([split, DeadCodeElimination()], name="SplitLayoutRewritePreproc")
