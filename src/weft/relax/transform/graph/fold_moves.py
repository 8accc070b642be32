"""Folds functions that only put the elements of their arguments into another order, by numpy.

Such are those that SplitLayoutRewritePreproc makes: blocks of 48 columns of a weight,
``W2[j // 48, i, j % 48] = W[i, j]``. Numpy takes the axes apart and copies at the speed of memory;
the loops, which nothing schedules, are slower, and first they have to be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.ir.expr import IntImm, Range
from weft.runtime.ndarray import NDArray
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.index_digits import Digit, digits_of, reordered
from weft.tir.op import is_const_int
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, SeqStmt, Stmt


def moved_by_numpy(func: PrimFunc, arrays: Sequence[NDArray]) -> list[NDArray] | None:
    """The results of a function of such arrays; None if it does anything else than move them.

    Args:
        func: its parameters are as many inputs as there are arrays, then its outputs.
        arrays: the inputs, of the shapes that the function declares. Results have their types.
    """
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    inputs, outputs = buffers[: len(arrays)], buffers[len(arrays) :]
    root = func.body.block.body if isinstance(func.body, BlockRealize) else func.body
    moves = [_move(stmt) for stmt in (root.seq if isinstance(root, SeqStmt) else [root])]
    results: dict[Buffer, NDArray] = {}
    for move in moves:
        if move is None or move.source not in inputs or move.target in results:
            return None
        array = arrays[inputs.index(move.source)]
        moved = reordered(array._array, move.digits, len(move.source.shape))
        results[move.target] = NDArray(moved, array.dtype)
    if len(results) != len(outputs) or any(buffer not in results for buffer in outputs):
        return None
    return [results[buffer] for buffer in outputs]


class _Move(NamedTuple):
    """``target[digits] = source``, for all elements of both."""

    target: Buffer
    source: Buffer
    digits: list[Digit]


def _move(stmt: Stmt) -> _Move | None:
    """What a nest of loops moves; None if it does anything else."""
    loops: dict[Var, For] = {}
    while isinstance(stmt, For):
        loops[stmt.loop_var] = stmt
        stmt = stmt.body
    if not isinstance(stmt, BlockRealize) or not is_const_int(stmt.predicate, 1):
        return None
    block, store = stmt.block, stmt.block.body
    if not isinstance(store, BufferStore) or not isinstance(store.value, BufferLoad):
        return None
    source, target = store.value.buffer, store.buffer
    shape = _extents(source)
    if shape is None or not _visits_all(stmt, loops, shape) or source.dtype != target.dtype:
        return None
    axes = [axis.var for axis in block.iter_vars]
    read = store.value.indices
    if len(read) != len(axes) or any(a is not b for a, b in zip(read, axes, strict=True)):
        return None
    digits = digits_of(store.indices, axes, shape)
    if digits is None or [digit.extent for digit in digits] != _extents(target):
        return None
    return None if block.init is not None else _Move(target, source, digits)


def _visits_all(realize: BlockRealize, loops: dict[Var, For], shape: list[int]) -> bool:
    """Whether a block runs once for each element of a shape."""
    block: Block = realize.block
    if len(loops) != len(shape) or len(block.iter_vars) != len(shape):
        return False
    for value, axis, extent in zip(realize.iter_values, block.iter_vars, shape, strict=True):
        loop = loops.pop(value, None) if isinstance(value, Var) else None
        if loop is None:
            return False
        if not all(_is_from_zero(domain, extent) for domain in (loop.domain, axis.dom)):
            return False
    return True


def _is_from_zero(domain: Range | None, extent: int) -> bool:
    """Whether a range is that of the numbers from 0 on to before ``extent``."""
    if domain is None:
        return False
    return is_const_int(domain.min, 0) and is_const_int(domain.extent, extent)


def _extents(buffer: Buffer) -> list[int] | None:
    """The extents of a buffer; None if one is unknown, or if the buffer has strides."""
    known = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
    return None if buffer.strides or len(known) != len(buffer.shape) else known
