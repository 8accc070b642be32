"""Tiles for the tensor cores of GPUs: fragments of matrices that a warp of threads multiplies.

The axes of a product or a convolution are fused into rows, columns and depth of a matrix product.
A fragment is what one instruction takes: it is loaded from shared memory, multiplied into an
accumulator, and stored to shared memory. ``RewriteTensorize`` puts the instructions in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.meta_schedule import block_questions
from weft.meta_schedule.annotations import (
    TENSORIZE,
    TENSORIZE_INIT,
    TILING_STRUCTURE,
    WARP_EXECUTION,
)
from weft.meta_schedule.schedule_rule.cooperative_fetch import annotate_fetch
from weft.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling, Tiling, each
from weft.meta_schedule.schedule_rule.reuse_type import ReuseType
from weft.support.errors import IRValueError, ScheduleError, UnsupportedError
from weft.tir import op
from weft.tir.expr import IterType, Var
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.schedule.analysis.tensorize_mapping import (
    AutoTensorizeMappingInfo,
    get_auto_tensorize_mapping_info,
)
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.transform import tile_with_tensor_intrin
from weft.tir.stmt import Block, For
from weft.tir.tensor_intrinsic import TensorIntrin

_WARP: Final = "threadIdx.y"
"""The threads of a warp are threadIdx.x, which the instructions use themselves."""
_MATRICES: Final = ("wmma.matrix_a", "wmma.matrix_b")
_ACCUMULATOR: Final = "wmma.accumulator"
_PADDING: Final = {"float16": 8, "int8": 16, "uint8": 16}
"""Elements by which a row of shared memory is longer than a multiple of 32, against threads that
wait for the same bank."""
_INNER_PIPELINE: Final = ([0, 0, 1], [0, 1, 2])
_OUTER_PIPELINE: Final = ([0, 0, 0, 0, 0, 1, 1], [0, 3, 1, 4, 5, 2, 6])
"""Stage and order of the statements of both loops over the depth: the next tile is copied, and the
next fragments are loaded, while fragments are multiplied."""


class IntrinGroup(NamedTuple):
    """The names of the intrinsics of one kind of fragment."""

    init: str
    load_a: str
    load_b: str
    compute: str
    store: str

    @staticmethod
    def of(names: Mapping[str, str]) -> IntrinGroup:
        """The group of a mapping, as ``get_wmma_intrin_group`` gives it; all must be registered."""
        missing = [key for key in IntrinGroup._fields if key not in names]
        if missing:
            raise IRValueError(
                f"intrin_groups: expected the keys {', '.join(IntrinGroup._fields)}, found no "
                f"{', '.join(missing)} in {dict(names)}"
            )
        group = IntrinGroup(*[names[key] for key in IntrinGroup._fields])
        if not group.compute.startswith("wmma"):
            raise UnsupportedError(
                f"MultiLevelTilingTensorCore: {group.compute} is planned (part of: code generation "
                "for GPUs); get_wmma_intrin_group gives what it takes"
            )
        for name in group:
            TensorIntrin.get(name)
        return group


@dataclass
class Fragments(Tiling):
    """A tiling whose innermost tile is a product of fragments."""

    group: IntrinGroup = field(kw_only=True)
    mapping: AutoTensorizeMappingInfo = field(kw_only=True)
    result: BlockRV | None = None
    """The block that copies the result back into its own layout."""


class MultiLevelTilingTensorCore(MultiLevelTiling):
    """As ``MultiLevelTiling``, around fragments that tensor cores multiply.

    A block that no intrinsic computes stays as it is. Rows, columns and depth that are no multiple
    of a fragment are padded.

    Args:
        intrin_groups: for each kind of fragment the names of its intrinsics by "init", "load_a",
            "load_b", "compute" and "store" (``get_wmma_intrin_group``).
        structure: and the arguments after it, as in ``MultiLevelTiling``. ``tile_binds`` ends with
            "threadIdx.y", the warps; ``reuse_write`` has to be in shared memory.
        use_software_pipeline: mark the loops over the depth, so that copies run ahead.
    """

    def __init__(
        self,
        intrin_groups: Sequence[Mapping[str, str]],
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
        use_software_pipeline: bool = False,
    ) -> None:
        super().__init__(
            structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write
        )
        self.intrin_groups = [IntrinGroup.of(names) for names in intrin_groups]
        self.use_software_pipeline = use_software_pipeline
        if _WARP not in self.tile_binds or "threadIdx.x" in self.tile_binds:
            raise IRValueError(
                f"tile_binds: expected {_WARP} for warps, and no threadIdx.x, which the "
                f"instructions use; got {self.tile_binds}"
            )
        for name, reuse in (("reuse_read", self.reuse_read), ("reuse_write", self.reuse_write)):
            if reuse.req != "must" or not reuse.scope.startswith("shared"):
                raise IRValueError(
                    f"{name}: expected ReuseType('must', levels, 'shared'): fragments are loaded "
                    f"from there and stored there; got {reuse}"
                )

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The tiled schedules, those of each kind of fragment; ``[sch]`` if none fits."""
        is_root = block_questions.is_root(sch, block)
        if is_root or not block_questions.needs_multi_level_tiling(sch, block):
            return [sch]
        tilings = [tiling for item in self._begun(sch, block) for tiling in self._tilings(item)]
        return [tiling.sch for tiling in tilings] or [sch]

    def _begun(self, sch: Schedule, block: BlockRV) -> Iterator[Fragments]:
        for group in self.intrin_groups:
            mapping = get_auto_tensorize_mapping_info(sch, block, _description(group.compute))
            if mapping is not None:
                copy = sch.copy()
                copy.annotate(block, TILING_STRUCTURE, self.structure)
                yield Fragments(copy, block, group=group, mapping=mapping)

    def _tilings(self, tiling: Tiling) -> list[Tiling]:
        assert isinstance(tiling, Fragments)
        return each(
            [tiling],
            self._as_product,
            self._tile,
            self._with_result_by_warp,
            self._reuse_writes,
            self._store_fragments,
            self._reuse_reads,
            self._load_fragments,
            self._pipeline,
        )

    # ---- the block as a product of matrices

    def _as_product(self, tiling: Fragments) -> list[Tiling]:
        """Fuse the axes into those of the intrinsic, and mark a tile that it replaces."""
        sch, block, group = tiling.sch, tiling.block, tiling.group
        stmt: Block = sch.get(block)
        if len(stmt.reads) != len(_MATRICES) or len(stmt.writes) != 1:
            return []
        _fuse_axes(tiling)
        try:
            inner = tile_with_tensor_intrin(sch, block, group.compute, allow_padding=True)
        except ScheduleError:
            inner = None  # it cannot be padded
        if inner is None:
            return []
        tiling.block = sch.blockize(inner)
        sch.annotate(tiling.block, TENSORIZE, group.compute)
        sch.annotate(tiling.block, TENSORIZE_INIT, group.init)
        sch.annotate(tiling.block, WARP_EXECUTION, 1)
        return [tiling]

    def _tile(self, tiling: Tiling) -> list[Tiling]:
        """Split rows and columns; axes that the product does not have join the first tile."""
        return [self._tiled(tiling, spatial_loops=2)]

    # ---- fragments of the result

    def _with_result_by_warp(self, tiling: Fragments) -> list[Tiling]:
        """Lay the result out by warp, fragment of the warp, and element of the fragment."""
        rows, columns = _extents(tiling.group.init)
        of_warp = [self._fragments_of_warp(tiling, axis) for axis in (-2, -1)]

        def by_warp(*indices: Var) -> list[PrimExpr]:
            *outer, row, column = indices
            tiles = [op.floordiv(row, rows), op.floordiv(column, columns)]
            pairs = list(zip(tiles, of_warp, strict=True))
            return [
                *outer,
                *[op.floordiv(tile, count) for tile, count in pairs],
                *[op.floormod(tile, count) for tile, count in pairs],
                op.floormod(row, rows),
                op.floormod(column, columns),
            ]

        written = tiling.sch.get(tiling.block).writes[0].buffer
        index_map = IndexMap.from_func(
            by_warp, len(written.shape), index_dtype=str(written.shape[-1].dtype)
        )
        tiling.sch.transform_layout(
            tiling.block, ("write", 0), index_map, assume_injective_transform=True
        )
        return [tiling]

    def _fragments_of_warp(self, tiling: Fragments, axis: int) -> PrimExpr:
        """How many fragments a warp has along rows (-2) or columns (-1)."""
        first = self.tile_binds.index(_WARP) + 1
        factors = [tiling.factors[level][axis] for level in self.levels(IterType.DataPar)[first:]]
        product: PrimExpr | None = None
        for factor in factors:
            assert factor is not None
            product = factor if product is None else product * factor
        assert product is not None
        return product

    def _store_fragments(self, tiling: Fragments) -> list[Tiling]:
        """Accumulate in fragments; each warp stores a row of them at a time to shared memory."""
        sch, shared = tiling.sch, tiling.write_reuse[0]
        copy = sch.cache_write(tiling.block, 0, _ACCUMULATOR)
        warp_row, warp_column, row, column = sch.get_loops(shared)[-6:-2]
        sch.reorder(row, warp_row, warp_column, column)
        sch.compute_at(copy, row, preserve_unit_loops=True)
        warp_row, warp_column = sch.get_loops(copy)[-6:-4]
        sch.bind(sch.fuse(warp_row, warp_column), _WARP)
        assert tiling.result is not None
        sch.reverse_compute_inline(tiling.result)
        stored = sch.blockize(sch.get_loops(copy)[-2])
        sch.annotate(stored, TENSORIZE, tiling.group.store)
        sch.fuse(*sch.get_loops(shared)[-5:])
        annotate_fetch(sch, shared, self.vector_load_lens)
        return [tiling]

    # ---- fragments of what is read

    def _load_fragments(self, tiling: Fragments) -> list[Tiling]:
        """Load fragments from shared memory in the inner loop over the depth."""
        sch = tiling.sch
        depth = tiling.tiles[self.levels(IterType.CommReduce)[1]][-1]
        names = (tiling.group.load_a, tiling.group.load_b)
        for place, (scope, name) in enumerate(zip(_MATRICES, names, strict=True)):
            copy = sch.cache_read(tiling.block, place, scope)
            sch.compute_at(copy, depth, preserve_unit_loops=True)
            inner = tile_with_tensor_intrin(sch, copy, name)
            assert inner is not None
            sch.annotate(sch.blockize(inner), TENSORIZE, name)
        for shared in tiling.read_reuse.values():
            [layout] = sch.get_producers(shared)
            sch.compute_inline(layout)
            padding = _PADDING.get(str(sch.get(shared).writes[0].buffer.dtype))
            if padding is not None:
                sch.storage_align(shared, 0, -2, 32, padding)
        return [tiling]

    def _pipeline(self, tiling: Tiling) -> list[Tiling]:
        levels = self.levels(IterType.CommReduce)
        sch, depth = tiling.sch, [loop for level in levels for loop in tiling.tiles[level]]
        extents = [block_questions.constant_extent(sch.get(loop)) for loop in depth]
        if not self.use_software_pipeline or len(levels) < 2 or set(extents) == {1}:
            return [tiling]
        for shared in tiling.read_reuse.values():
            sch.annotate(shared, "tir.manifest_shared_memory_local_stage", 1)
            sch.annotate(shared, "double_buffer_scope", 0)
        outer, inner = (tiling.tiles[level][-1] for level in levels[:2])
        for loop, (stages, order) in ((inner, _INNER_PIPELINE), (outer, _OUTER_PIPELINE)):
            sch.annotate(loop, "software_pipeline_stage", stages)
            sch.annotate(loop, "software_pipeline_order", order)
        return [tiling]


def _description(name: str) -> PrimFunc:
    intrin = TensorIntrin.get(name)
    assert intrin is not None
    return intrin.desc


def _extents(name: str) -> tuple[int, int]:
    """Rows and columns of the fragment that an intrinsic fills."""
    extents = [loop.extent for loop in collect(_description(name).body, For)]
    rows, columns = (extent.value for extent in extents if isinstance(extent, IntImm))
    return rows, columns


def _fuse_axes(tiling: Fragments) -> None:
    """Give the block and what it reads and writes the axes of the intrinsic.

    Copies in the order of the block's axes stand around it, and take the layout of a matrix.
    """
    sch, block, mapping = tiling.sch, tiling.block, tiling.mapping
    before: Block = sch.get(block)
    buffers = [
        (("write", 0), before.writes[0].buffer),
        (("read", 0), before.reads[0].buffer),
        (("read", 1), before.reads[1].buffer),
    ]
    copies = [sch.reindex(block, place) for place, _ in buffers]
    tiling.result = copies[0]
    maps = []
    for place, buffer in buffers:
        now: Block = sch.get(block)
        regions = now.writes if place[0] == "write" else now.reads
        used = [dim.min for dim in regions[place[1]].region]
        maps.append(_map_of(mapping, [axis.var for axis in now.iter_vars], used, buffer))
        sch.transform_layout(block, place, maps[-1], assume_injective_transform=True)
    for copy, index_map in zip(copies, maps, strict=True):
        sch.transform_block_layout(copy, index_map)
    sch.transform_block_layout(block, mapping.mappings[0])


def _map_of(
    mapping: AutoTensorizeMappingInfo,
    axes: Sequence[Var],
    used: Sequence[PrimExpr],
    buffer: object,
) -> IndexMap:
    """The part of the map of the axes that a buffer has, which is indexed by ``used`` of them."""
    whole = mapping.mappings[0]
    places = [axes.index(index) for index in used if isinstance(index, Var)]
    initial = [whole.initial_indices[place] for place in places]
    kept = len(whole.final_indices) - len(mapping.rhs_iters)
    finals = [index for index in whole.final_indices[:kept] if index in initial]
    to_final = {
        axis.var: index
        for axis, index in zip(mapping.rhs_iters, whole.final_indices[kept:], strict=True)
    }
    [desc] = [desc for mine, desc in mapping.lhs_buffer_map.items() if mine is buffer]
    wanted = [index for index in mapping.rhs_buffer_indices[desc] if isinstance(index, Var)]
    return IndexMap(initial, [*finals, *[to_final[index] for index in wanted]])
