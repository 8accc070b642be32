"""Finds values that depend on weights alone, and PrimFuncs that only reshape."""

from __future__ import annotations

from collections.abc import Sequence

from weft import te, topi
from weft.arith.analyzer import Analyzer
from weft.arith.iter_map.detect import iter_map_simplify
from weft.ir.expr import Extent, IntImm, PrimExpr, as_prim_expr
from weft.ir.functor import collect
from weft.ir.node import Array
from weft.ir.structural import structural_equal
from weft.relax.analysis.bindings import all_bindings
from weft.relax.analysis.purity import contains_impure_call
from weft.relax.analysis.variables import free_vars
from weft.relax.expr import Function, Var
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BufferStore


def computable_at_compile_time(func: Function) -> Array[Var]:
    """The bound variables that depend on no run-time input.

    Attribute ``num_input`` of the function counts the leading parameters that are inputs; the
    others are weights.
    """
    count = func.attrs.get("num_input")
    if count is None:
        return Array([])
    known: dict[Var, None] = dict.fromkeys(func.params[int(count) :])
    computable: list[Var] = []
    for binding in all_bindings(func):
        if contains_impure_call(binding.value):
            continue
        if all(var in known for var in free_vars(binding.value)):
            known[binding.var] = None
            computable.append(binding.var)
    return Array(computable)


def known_at_compile_time(func: Function) -> set[Var]:
    """The weights of a function (see above), and what depends on them alone."""
    count = func.attrs.get("num_input")
    weights = [] if count is None else func.params[int(count) :]
    return {*weights, *computable_at_compile_time(func)}


def has_reshape_pattern(func: PrimFunc) -> bool:
    """Whether a PrimFunc only copies its first buffer to its last one in row-major order."""
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    if len(buffers) < 2:
        return False
    source, target = buffers[0], buffers[-1]
    blocks = [b for b in collect(func.body, Block) if isinstance(b.body, BufferStore)]
    stores = collect(func.body, BufferStore)
    if len(blocks) != 1 or len(stores) != 1 or stores[0].buffer is not target:
        return False
    load = stores[0].value
    if not isinstance(load, BufferLoad) or load.buffer is not source:
        return False
    return _same_offset(blocks[0], load, stores[0]) or _is_kernel_of_reshape(func, source, target)


def _is_kernel_of_reshape(func: PrimFunc, source: Buffer, target: Buffer) -> bool:
    """Whether a PrimFunc is the one that ``relax.reshape`` is lowered to.

    Extents such as ``t // 4 * 80 + 80`` hide from a proof by iteration maps what it does.
    """
    sizes = [*source.shape, *target.shape]
    if source.dtype != target.dtype or all(isinstance(size, IntImm) for size in sizes):
        return False
    given = te.placeholder(source.shape, source.dtype)
    kernel = te.create_prim_func([given, topi.reshape(given, target.shape)])
    return structural_equal(func.body, kernel.body, map_free_vars=True)


def _same_offset(block: Block, load: BufferLoad, store: BufferStore) -> bool:
    """Whether load and store provably access the same element in row-major order."""
    analyzer = Analyzer()
    for axis in block.iter_vars:
        if axis.dom is not None:
            analyzer.bind(axis.var, axis.dom)
    source, target = (_flat(item.indices, item.buffer.shape) for item in (load, store))
    return analyzer.can_prove_equal(source, target) or _same_iteration(block, source, target)


def _same_iteration(block: Block, source: PrimExpr, target: PrimExpr) -> bool:
    """Whether both have the same iteration map over the axes; this proves symbolic extents, too."""
    domains = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    analyzer = Analyzer()
    left, right = (
        iter_map_simplify([item], domains, simplify_trivial_iterators=True, analyzer=analyzer)[0]
        for item in (source, target)
    )
    return analyzer.can_prove_equal(left, right)


def _flat(indices: Sequence[PrimExpr], dims: Sequence[PrimExpr]) -> PrimExpr:
    """The number of an element in row-major order."""
    offset: Extent = 0
    for index, dim in zip(indices, dims, strict=True):
        offset = index if isinstance(offset, int) else offset * dim + index
    return as_prim_expr(offset)
