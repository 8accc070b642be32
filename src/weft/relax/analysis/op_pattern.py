"""What a PrimFunc does to its tensors, as fusion needs to know it: the operator's pattern.

======================  ==========================================================================
ELEMWISE                an element of the result needs the input's element at the same index
BROADCAST               ... at the same index without some of the axes
INJECTIVE               ... at indices computed from the result's index, without a reduction
COMM_REDUCE             a reduction over whole axes
OUT_ELEMWISE_FUSABLE    reads elements of its input several times (matmul, convolution, pooling,
                        softmax); an element-wise function of the result may be fused after it
TUPLE                   a tuple of the graph, no function
OPAQUE                  anything else
======================  ==========================================================================

The kinds and their order are Relay's (Chen et al., "TVM: An Automated End-to-End Optimizing
Compiler for Deep Learning", OSDI 2018, section 3); users see the number of a kind in an attribute.
To derive the kind, each block must write whole buffers, one element for each point of its
data-parallel axes (the iteration map of its bindings proves it); then the indices of its loads are
compared with those of its store. A wrong pattern would lead to wrong fusions, so everything that is
not recognised is OPAQUE.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from weft.arith.iter_map.detect import detect_iter_map
from weft.arith.iter_map.nodes import IterMapLevel, IterSumExpr
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import collect
from weft.ir.structural import structural_equal
from weft.relax.ir.shape_arith import same_dim
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import Add, Call, Cast, IterType, Mul, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.stmt import BlockRealize, BufferStore, For, LetStmt, SeqStmt, Stmt


class OpPatternKind(IntEnum):
    """The patterns, from what fuses best to what does not fuse."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


_ELEMWISE: Final = OpPatternKind.ELEMWISE
_BROADCAST: Final = OpPatternKind.BROADCAST
_INJECTIVE: Final = OpPatternKind.INJECTIVE
_REDUCE: Final = OpPatternKind.COMM_REDUCE
_OUT_FUSABLE: Final = OpPatternKind.OUT_ELEMWISE_FUSABLE
_OPAQUE: Final = OpPatternKind.OPAQUE
_BY_NUMBER: Final = {int(kind): kind for kind in OpPatternKind}


@deep_recursion
def op_pattern(func: PrimFunc) -> OpPatternKind:
    """The pattern of a PrimFunc; OPAQUE where it is not recognised."""
    outside = {func.buffer_map[param] for param in func.params if param in func.buffer_map}
    blocks: list[tuple[BlockRealize, list[For]]] = []
    if not _leaf_blocks(func.body, [], blocks) or not blocks:
        return _OPAQUE
    kind = _ELEMWISE
    written: set[Buffer] = set()
    for realize, loops in blocks:
        stores = _stores(realize.block.body)
        if not stores or not _writes_all(realize, loops, stores):
            return _OPAQUE
        targets = {store.buffer for store in stores}
        if targets & written or _has_effects(realize):
            return _OPAQUE  # an element that is written twice is no function of its index alone
        pattern = _block_pattern(realize, stores)
        if kind is _REDUCE and pattern <= _INJECTIVE and targets & outside:
            if pattern is _ELEMWISE and all(_is_rounding(store, written) for store in stores):
                pattern = _REDUCE  # it rounds a sum from a wider accumulator to the result's dtype
            else:
                kind = _OUT_FUSABLE  # as in softmax: the reduced input is read again
        kind = max(kind, pattern)
        written |= targets
    return kind


def _leaf_blocks(
    stmt: Stmt, loops: list[For], leaves: list[tuple[BlockRealize, list[For]]]
) -> bool:
    """Collect the innermost blocks with the loops around them; False if anything else is there."""
    if isinstance(stmt, SeqStmt):
        return all(_leaf_blocks(item, loops, leaves) for item in stmt.seq)
    if isinstance(stmt, For):
        return _leaf_blocks(stmt.body, [*loops, stmt], leaves)
    if not isinstance(stmt, BlockRealize) or stmt.block.match_buffers:
        return False
    block = stmt.block
    if not block.iter_vars and block.init is None and not loops and _holds_blocks(block.body):
        return _leaf_blocks(block.body, loops, leaves)
    leaves.append((stmt, loops))
    return True


def _holds_blocks(stmt: Stmt) -> bool:
    return bool(collect(stmt, BlockRealize))


def _stores(body: Stmt) -> list[BufferStore]:
    """The stores of a body that only stores, all at the same index; empty for any other body."""
    todo: list[Stmt] = [body]
    stores: list[BufferStore] = []
    while todo:
        stmt = todo.pop(0)
        if isinstance(stmt, SeqStmt):
            todo = [*stmt.seq, *todo]
        elif isinstance(stmt, LetStmt):
            todo.insert(0, stmt.body)
        elif isinstance(stmt, BufferStore) and (
            not stores or structural_equal(stmt.indices, stores[0].indices)
        ):
            stores.append(stmt)
        else:
            return []
    return stores if len({store.buffer for store in stores}) == len(stores) else []


def _has_effects(realize: BlockRealize) -> bool:
    """Whether the block makes a call that writes memory or has another side effect."""
    calls = collect(realize, Call)
    return any(effect_of(call) > CallEffectKind.ReadState for call in calls)


def _writes_all(realize: BlockRealize, loops: Sequence[For], stores: Sequence[BufferStore]) -> bool:
    """Whether the block writes each element of its buffers exactly once (per reduction step).

    The indices of the store must be the data-parallel axes, in any order, each as long as the
    dimension of the buffer, and the loops must run through all points of all axes.
    """
    axes = realize.block.iter_vars
    if any(axis.iter_type not in (IterType.DataPar, IterType.CommReduce) for axis in axes):
        return False
    spatial = {axis.var: axis.dom for axis in axes if axis.iter_type == IterType.DataPar}
    for store in stores:
        used = [index for index in store.indices if isinstance(index, Var)]
        if len(set(used)) != len(used):
            return False
        for index, extent in zip(store.indices, store.buffer.shape, strict=True):
            if not _covers(spatial.get(index) if isinstance(index, Var) else None, index, extent):
                return False
        if any(axis not in used and not _is_point(dom) for axis, dom in spatial.items()):
            return False
    return _binds_all(realize, loops)


def _covers(domain: Range | None, index: PrimExpr, extent: PrimExpr) -> bool:
    """Whether an index runs through a whole dimension of the buffer."""
    if domain is None:
        return is_const_int(index, 0) and is_const_int(extent, 1)
    return is_const_int(domain.min, 0) and same_dim(domain.extent, extent)


def _binds_all(realize: BlockRealize, loops: Sequence[For]) -> bool:
    """Whether the loops reach every combination of the axes' values."""
    domains = {loop.loop_var: Range(loop.min, loop.extent) for loop in loops}
    values = realize.iter_values
    axes = realize.block.iter_vars
    plain = [value for value in values if isinstance(value, Var)]
    if is_const_int(realize.predicate, 1) and len(set(plain)) == len(plain):
        if all(
            _is_same_range(domains.get(value) if isinstance(value, Var) else None, value, axis.dom)
            for value, axis in zip(values, axes, strict=True)
        ):
            return True
    iter_map = detect_iter_map(values, domains, realize.predicate, IterMapLevel.Surjective)
    if len(iter_map.indices) != len(values):
        return False
    return all(
        isinstance(index, IterSumExpr) and _is_dense(index, axis.dom)
        for index, axis in zip(iter_map.indices, axes, strict=True)
    )


def _is_point(domain: Range | None) -> bool:
    return domain is not None and is_const_int(domain.extent, 1)


def _is_same_range(domain: Range | None, value: PrimExpr, wanted: Range | None) -> bool:
    if wanted is None:
        return False
    if domain is None:
        return _is_point(wanted) and bool(structural_equal(value, wanted.min))
    return bool(structural_equal(domain.min, wanted.min)) and same_dim(domain.extent, wanted.extent)


def _is_dense(index: IterSumExpr, wanted: Range | None) -> bool:
    """Whether an iteration sum (``i*8 + j`` with ``j < 8``) covers a range without gaps."""
    if wanted is None or not same_dim(index.base, wanted.min):
        return False
    extent: PrimExpr = IntImm(wanted.extent.dtype, 1)
    for split in reversed(index.args):
        if not same_dim(split.scale, extent):
            return False
        extent = extent * split.extent
    return same_dim(extent, wanted.extent)


def _is_rounding(store: BufferStore, computed: set[Buffer]) -> bool:
    """Whether a store only casts a value that an earlier block has computed."""
    source = _without_casts(store.value)
    return (
        source is not store.value and isinstance(source, BufferLoad) and source.buffer in computed
    )


def _block_pattern(realize: BlockRealize, stores: Sequence[BufferStore]) -> OpPatternKind:
    """The pattern of one block that writes whole buffers."""
    block = realize.block
    loads = collect(block.body, BufferLoad)
    targets = {store.buffer for store in stores}
    reduced = {axis.var for axis in block.iter_vars if axis.iter_type == IterType.CommReduce}
    if reduced:
        inputs = [load for load in loads if load.buffer not in targets]
        for load in loads:
            if load.buffer in targets and not structural_equal(load.indices, stores[0].indices):
                return _OPAQUE  # a scan: it needs results of other points
        reads_again = _is_multiply_add(block.body) or any(
            not _reduces_whole_axes(reduced, load.indices) for load in inputs
        )
        return _OUT_FUSABLE if reads_again else _REDUCE
    if any(load.buffer in targets for load in loads):
        return _OPAQUE
    kinds = [_load_pattern(stores[0], load) for load in loads]
    widest = max(kinds, default=_ELEMWISE)
    return _ELEMWISE if widest is _BROADCAST and _ELEMWISE in kinds else widest


def _load_pattern(store: BufferStore, load: BufferLoad) -> OpPatternKind:
    """The pattern that the indices of one load and of the store make."""
    if _is_elementwise(store, load):
        return _ELEMWISE
    return _BROADCAST if _is_broadcast(store, load) else _INJECTIVE


def _is_elementwise(store: BufferStore, load: BufferLoad) -> bool:
    return (
        len(store.indices) == len(load.indices)
        and all(map(structural_equal, store.indices, load.indices))
        and all(map(same_dim, store.buffer.shape, load.buffer.shape))
    )


def _is_broadcast(store: BufferStore, load: BufferLoad) -> bool:
    """Whether the load's indices are some of the store's, in order; extents of 1 do not count."""
    remaining = iter(zip(store.indices, store.buffer.shape, strict=True))
    for index, extent in zip(load.indices, load.buffer.shape, strict=True):
        if is_const_int(extent, 1) and is_const_int(index, 0):
            continue
        if not any(index is other and same_dim(extent, size) for other, size in remaining):
            return False
    return True


def _reduces_whole_axes(reduced: set[Var], indices: Sequence[PrimExpr]) -> bool:
    """Whether each reduced axis is an index by itself, as in a sum; in pooling it is ``i + k``."""
    return all(
        isinstance(index, Var) or not any(var in reduced for var in collect(index, Var))
        for index in indices
    )


def _is_multiply_add(body: Stmt) -> bool:
    """Whether the block is ``C[i, j] = C[i, j] + A[i, k] * B[k, j]``, perhaps with casts.

    Each factor must lack an axis of the result; otherwise its elements are not read several times.
    """
    if not isinstance(body, BufferStore):
        return False
    total = _without_casts(body.value)
    if not isinstance(total, Add):
        return False
    accumulator, product = _without_casts(total.a), _without_casts(total.b)
    if not isinstance(accumulator, BufferLoad) or not isinstance(product, Mul):
        return False
    factors = [_without_casts(product.a), _without_casts(product.b)]
    return accumulator.buffer is body.buffer and all(
        isinstance(factor, BufferLoad) and _is_reused(body, factor) for factor in factors
    )


def _is_reused(store: BufferStore, load: BufferLoad) -> bool:
    """Whether one loaded element contributes to several elements of the result."""
    used = set(collect(load.indices, Var))
    return any(isinstance(index, Var) and index not in used for index in store.indices)


def _without_casts(expr: PrimExpr) -> PrimExpr:
    while isinstance(expr, Cast):
        expr = expr.value
    return expr


def has_op_pattern(func: PrimFunc) -> bool:
    """Whether the function has an attribute ``op_pattern`` other than ELEMWISE (0)."""
    return bool(func.attrs.get("op_pattern", 0))


def known_pattern(func: PrimFunc) -> OpPatternKind:
    """The pattern that the attribute ``op_pattern`` states; OPAQUE without a known one."""
    stated = func.attrs.get("op_pattern")
    return _BY_NUMBER.get(int(stated), _OPAQUE) if stated is not None else _OPAQUE


__all__ = ["OpPatternKind", "has_op_pattern", "known_pattern", "op_pattern"]
