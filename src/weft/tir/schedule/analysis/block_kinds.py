"""What kind a block or loop is: spatial, reducing, an output, bound to its loops one by one."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir.functor import collect, mentions
from weft.support.errors import ScheduleError
from weft.tir.expr import IterType
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.tree import SRefTree, StmtSRef
from weft.tir.stmt import Block, BlockRealize, For


def loop_kind(loop: For) -> IterType:
    """The kind of the axes that a loop runs: ``IterType.DataPar`` also where it runs none.

    ``IterType.Opaque`` stands for a mixture, and for axes that are neither spatial nor reduced.
    """
    kinds = set()
    for realize in tree.child_realizes(loop):
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
            if mentions(value, loop.loop_var):
                plain = axis.iter_type in (IterType.DataPar, IterType.CommReduce)
                kinds.add(axis.iter_type if plain else IterType.Opaque)
    if not kinds:
        return IterType.DataPar
    return kinds.pop() if len(kinds) == 1 else IterType.Opaque


def get_loop_iter_type(sch: Session, loop: LoopRV) -> IterType:
    """The kind of the axes that a loop runs (``IterVar.DataPar`` and so on).

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> k = te.reduce_axis((0, 32), name="k")
    >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> [get_loop_iter_type(sch, loop) == tir.IterVar.CommReduce for loop in sch.get_loops("B")]
    [False, True]
    """
    stmt = sch.get(loop)
    assert isinstance(stmt, For)
    return loop_kind(stmt)


def is_spatial(block: Block) -> bool:
    """Whether all axes of a block are spatial."""
    return all(axis.iter_type == IterType.DataPar for axis in block.iter_vars)


def is_spatial_function(func: PrimFunc) -> bool:
    """Whether all blocks of a function are spatial."""
    return all(is_spatial(realize.block) for realize in collect(func.body, BlockRealize))


def has_trivial_binding(state: SRefTree, sref: StmtSRef) -> bool:
    """Whether each axis of a block is bound to a loop of its own, in the order of the loops."""
    loops = [loop.stmt for loop in tree.loops_above(sref)]
    values = tree.realize_of(state, sref).iter_values
    return len(loops) == len(values) and all(
        isinstance(loop, For) and value is loop.loop_var
        for loop, value in zip(loops, values, strict=True)
    )


def has_block(sch: Session, block_name: str) -> bool:
    """Whether the function that a schedule works on has a block of that name.

    >>> from weft import te, tir
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> has_block(tir.Schedule(te.create_prim_func([A, B])), "C")
    False
    """
    root = tree.block_of(sch.state.roots[sch._default_function()])
    return any(
        isinstance(item, Block) and item.name_hint == block_name
        for item in tree.all_references(root)
    )


def is_output_block(sch: Session, block: BlockRV | str) -> bool:
    """Whether a block writes memory that the block around it does not allocate.

    >>> from weft import te, tir
    >>> A = te.placeholder((8,), name="A")
    >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
    >>> is_output_block(tir.Schedule(te.create_prim_func([A, B])), "B")
    True
    """
    sref = sch._sref(sch._block_named(block))
    scope = tree.scope_of(sref)
    if scope is None:
        return True
    allocated = {buffer.data for buffer in tree.block_of(scope).alloc_buffers}
    return any(region.buffer.data not in allocated for region in tree.block_of(sref).writes)


def would_apply(sch: Session, edit: Callable[[], object]) -> bool:
    """Whether calls of primitives succeed; what they do is undone and not recorded."""
    trace, sch.trace = sch.trace, None
    symbols = dict(sch._symbols)
    try:
        with sch.state.trial():
            edit()
    except ScheduleError:
        return False
    finally:
        sch.trace, sch._symbols = trace, symbols
    return True
