"""How the axes of a block become those of a tensor intrinsic: which are fused into which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from weft.arith.analyzer_of import analyzer_of
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions
from weft.tir.buffer import Buffer
from weft.tir.expr import IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.schedule.analysis.intrinsic_match import Correspondence, correspondence
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session


class AutoTensorizeMappingInfo(NamedTuple):
    """What a block has to become so that its inner loops are those of an intrinsic.

    Attributes:
        mappings: one map, from the block's axes to new ones: first those that the intrinsic does
            not have, then one for each axis of the intrinsic, in its order.
        lhs_buffer_map: a buffer of the block -> that of the intrinsic's description.
        rhs_buffer_indices: a buffer of the description -> where it is accessed.
        lhs_iters: the axes of the block.
        rhs_iters: the axes of the description.
    """

    mappings: list[IndexMap]
    lhs_buffer_map: Mapping[Buffer, Buffer]
    rhs_buffer_indices: Mapping[Buffer, Sequence[PrimExpr]]
    lhs_iters: Sequence[IterVar]
    rhs_iters: Sequence[IterVar]


def get_auto_tensorize_mapping_info(
    sch: Session, block: BlockRV | str, desc_func: PrimFunc
) -> AutoTensorizeMappingInfo | None:
    """How a block's axes are fused into those of an intrinsic; None if it computes something else.

    Axes of a kind that go through the same buffers, as the row of an image and its column go
    through the input and the result of a convolution, become one axis of the intrinsic.

    Args:
        sch: the schedule.
        block: the block, or its name.
        desc_func: the description of the intrinsic.

    >>> from weft import te, tir
    >>> from weft.tensor_intrin.cuda import WMMA_SYNC_16x16x16_f16f16f32_INTRIN as name
    >>> a, b = (te.placeholder((64, 64), "float16", name) for name in "ab")
    >>> k = te.reduce_axis((0, 64))
    >>> cast = lambda value: value.astype("float32")
    >>> c = te.compute((64, 64), lambda i, j: te.sum(cast(a[i, k]) * cast(b[k, j]), k), "c")
    >>> sch = tir.Schedule(te.create_prim_func([a, b, c]))
    >>> info = get_auto_tensorize_mapping_info(sch, "c", tir.TensorIntrin.get(name).desc)
    >>> len(info.mappings[0].final_indices)
    3
    """
    block = sch.get_block(block) if isinstance(block, str) else block
    match = correspondence(sch, block, desc_func)
    groups = None if match is None else _groups(match)
    if match is None or groups is None:
        return None
    to_desc = {mine: desc for desc, mine in match.buffers.items()}
    return AutoTensorizeMappingInfo(
        [_index_map(match, groups)], to_desc, dict(match.desc_indices), match.axes, match.desc_axes
    )


def _groups(match: Correspondence) -> list[list[int]] | None:
    """For each axis of the description the places of the block's axes that it consists of.

    The last list has the others. None where an axis has none, or could be one of two.
    """
    simple = _simplified(match)
    uses = [_uses(axis, simple, match.buffers.values()) for axis in match.axes]
    wanted = [
        (axis.iter_type, _uses(axis, match.desc_indices, match.buffers)) for axis in match.desc_axes
    ]
    groups = [
        [
            place
            for place, axis in enumerate(match.axes)
            if (axis.iter_type, uses[place]) == (kind, where)
        ]
        for kind, where in wanted
    ]
    taken = {place for group in groups for place in group}
    others = [place for place in range(len(match.axes)) if place not in taken]
    has_all = all(groups) and len(set(wanted)) == len(wanted)
    return [*groups, others] if has_all else None


def _simplified(match: Correspondence) -> dict[Buffer, list[PrimExpr]]:
    """The indices of the block, in which axes that make no difference are not mentioned.

    An axis of one iteration stays where it is an index: a fused axis may have it.
    """
    domains = {axis.var: axis.dom for axis in match.axes if axis.dom is not None}
    analyzer = analyzer_of(domains)
    simple = {}
    for buffer, indices in match.indices.items():
        pairs = [(index, analyzer.simplify(index)) for index in indices]
        simple[buffer] = [old if isinstance(new, IntImm) else new for old, new in pairs]
    return simple


def _uses(
    axis: IterVar, indices: Mapping[Buffer, Sequence[PrimExpr]], buffers: Iterable[Buffer]
) -> tuple[bool, ...]:
    """For each buffer whether its indices mention an axis."""
    return tuple([
        any(mentions(index, axis.var) for index in indices[buffer]) for buffer in buffers
    ])  # fmt: skip


def _index_map(match: Correspondence, groups: Sequence[Sequence[int]]) -> IndexMap:
    """The map that keeps the axes of the last group, and fuses each of the others."""
    variables = [Var(axis.var.name, axis.var.dtype) for axis in match.axes]
    *fused, kept = groups
    finals: list[PrimExpr] = [variables[place] for place in kept]
    for group in fused:
        index: PrimExpr = variables[group[0]]
        for place in group[1:]:
            domain = match.axes[place].dom
            assert domain is not None
            index = index * domain.extent + variables[place]
        finals.append(index)
    return IndexMap(variables, finals)
