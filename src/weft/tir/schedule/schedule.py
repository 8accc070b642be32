"""``Schedule`` makes a program faster step by step and keeps what it computes.

The class is the table of primitives; each lives with its family in ``primitive/``, and what they
share in ``session``.
"""

from __future__ import annotations

from weft.support.errors import ScheduleError
from weft.tir.schedule.primitive import sampling
from weft.tir.schedule.primitive.block import blockize, queries, tensorize
from weft.tir.schedule.primitive.buffer import buffer_access, storage
from weft.tir.schedule.primitive.cache import (
    cache_index,
    read_write_at,
    reindex,
    reindex_cache,
    rolling_buffer,
)
from weft.tir.schedule.primitive.cache import cache_read_write as cache
from weft.tir.schedule.primitive.compute import compute_at, compute_inline, reverse_compute_inline
from weft.tir.schedule.primitive.layout import block_layout
from weft.tir.schedule.primitive.layout import transform_layout as layout
from weft.tir.schedule.primitive.loop import annotation, kinds, loop_structure, loops, merge
from weft.tir.schedule.primitive.padding import decompose_padding as padding
from weft.tir.schedule.primitive.padding import pad_einsum
from weft.tir.schedule.primitive.reduction import decompose_reduction, rfactor
from weft.tir.schedule.session import Session

__all__ = ["Schedule", "ScheduleError"]


class Schedule(Session):
    """Rewrites loops and blocks of a program step by step, without changing what it computes.

    Each method of the table below is a primitive: it changes ``sch.mod``, or refuses and leaves it
    as it was. A primitive takes and returns *random variables*, which go on naming their loop or
    block through later changes. The calls are recorded in ``sch.trace``, which replays them.

    Args:
        mod: the PrimFunc, or the module with PrimFuncs, to start from. It is not changed.
        seed: what the random numbers of sampling start from.
        debug_mask: "all" checks the state after every change.
        error_render_level: what an error shows: "detail" has the program underlined, "fast"
            leaves that out, "none" the hint too.
        enable_check: False leaves most conditions of primitives to the caller.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> i, j = sch.get_loops("B")
    >>> outer, inner = sch.split(j, factors=[None, 8])
    >>> sch.vectorize(inner)
    >>> print(sch.get(i))
    A = T.Buffer((8, 32))
    B = T.Buffer((8, 32))
    for i, j_0 in T.grid(8, 4):
        for j_1 in T.vectorized(8):
            with T.block("B"):
                v_i = T.axis.spatial(8, i)
                v_j = T.axis.spatial(32, j_0 * 8 + j_1)
                T.reads(A[v_i, v_j])
                T.writes(B[v_i, v_j])
                B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)

    Source: TVM's ``tir.Schedule`` (Feng et al., "TensorIR", ASPLOS 2023).
    """

    # ---- primitives, by family

    get_block = queries.get_block
    get_loops = queries.get_loops
    get_child_blocks = queries.get_child_blocks
    get_producers = queries.get_producers
    get_consumers = queries.get_consumers
    get_output_blocks = queries.get_output_blocks
    enter_postproc = queries.enter_postproc

    sample_categorical = sampling.sample_categorical
    sample_perfect_tile = sampling.sample_perfect_tile
    sample_partitioned_tile = sampling.sample_partitioned_tile
    sample_compute_location = sampling.sample_compute_location

    split = loops.split
    fuse = loops.fuse
    reorder = loops.reorder
    merge = merge.merge
    loop_partition = loop_structure.loop_partition
    add_unit_loop = loop_structure.add_unit_loop
    reorder_block_iter_var = loop_structure.reorder_block_iter_var

    parallel = kinds.parallel
    vectorize = kinds.vectorize
    bind = kinds.bind
    unroll = kinds.unroll

    decompose_reduction = decompose_reduction.decompose_reduction
    rfactor = rfactor.rfactor

    blockize = blockize.blockize
    tensorize = tensorize.tensorize

    set_scope = storage.set_scope
    unsafe_set_dtype = storage.unsafe_set_dtype
    storage_align = storage.storage_align

    unsafe_hide_buffer_access = buffer_access.unsafe_hide_buffer_access
    annotate_buffer_access = buffer_access.annotate_buffer_access

    annotate = annotation.annotate
    unannotate = annotation.unannotate

    cache_read = cache.cache_read
    cache_write = cache.cache_write
    cache_inplace = cache.cache_inplace
    cache_index = cache_index.cache_index
    reindex_cache_read = reindex_cache.reindex_cache_read
    reindex_cache_write = reindex_cache.reindex_cache_write
    reindex = reindex.reindex
    read_at = read_write_at.read_at
    write_at = read_write_at.write_at

    reverse_compute_at = compute_at.reverse_compute_at
    compute_at = compute_at.compute_at
    compute_inline = compute_inline.compute_inline
    reverse_compute_inline = reverse_compute_inline.reverse_compute_inline

    transform_layout = layout.transform_layout
    set_axis_separator = layout.set_axis_separator
    rolling_buffer = rolling_buffer.rolling_buffer
    pad_einsum = pad_einsum.pad_einsum
    decompose_padding = padding.decompose_padding
    can_decompose_padding = padding.can_decompose_padding
    transform_block_layout = block_layout.transform_block_layout
