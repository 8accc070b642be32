"""Tiles whose innermost one is what an instruction computes."""

from __future__ import annotations

from collections.abc import Sequence

from weft.meta_schedule.annotations import TENSORIZE
from weft.meta_schedule.block_questions import is_root
from weft.meta_schedule.schedule_rule.multi_level_tiling import MultiLevelTiling, Tiling
from weft.meta_schedule.schedule_rule.reuse_type import ReuseType
from weft.tir.schedule.analysis.intrinsic_match import computes_as
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.transform import tile_with_tensor_intrin
from weft.tir.tensor_intrinsic import TensorIntrin


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """As ``MultiLevelTiling``, around a tile that a tensor intrinsic replaces.

    ``RewriteTensorize`` replaces it. A block that does not compute what the intrinsic does, or
    whose loops its extents do not divide, stays as it is.

    Args:
        intrin_name: the name of the intrinsic (``TensorIntrin.register``).
        structure: and the arguments after it, as in ``MultiLevelTiling``.
    """

    def __init__(
        self,
        intrin_name: str,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        super().__init__(
            structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write
        )
        self.intrin_name = intrin_name
        intrin = TensorIntrin.get(intrin_name)
        assert intrin is not None
        self._desc = intrin.desc

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The tiled schedules; ``[sch]`` if the intrinsic does not fit."""
        if is_root(sch, block) or not computes_as(sch, block, self._desc):
            return [sch]
        return super().apply(sch.copy(), block) or [sch]

    def _tilings(self, tiling: Tiling) -> list[Tiling]:
        inner = tile_with_tensor_intrin(tiling.sch, tiling.block, self.intrin_name)
        if inner is None:
            return []
        tiling.block = tiling.sch.blockize(inner)
        tiling.sch.annotate(tiling.block, TENSORIZE, self.intrin_name)
        return super()._tilings(tiling)
