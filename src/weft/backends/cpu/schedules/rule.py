"""The rule that schedules any function for a CPU."""

from __future__ import annotations

from weft.backends.cpu.machine import is_cpu
from weft.backends.cpu.schedules import default
from weft.dlight.apply import ScheduleRule
from weft.target.machine import machine_of
from weft.target.target import Target
from weft.te.primfunc import LAYOUT_FREE_BUFFERS
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import BlockRealize


class Default(ScheduleRule):
    """Schedules each block by the program that fits it (``weft.backends.cpu.schedules.default``).

    >>> import weft
    >>> from weft import dlight, te
    >>> x = te.placeholder((64, 64), name="x")
    >>> func = te.create_prim_func([x, te.compute((64, 64), lambda i, j: x[i, j] + 1, name="y")])
    >>> schedule = dlight.cpu.Default().apply(func, weft.target.Target("llvm -num-cores=2"), False)
    >>> "T.vectorized" in schedule.mod.script()
    True
    """

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """The schedule of ``func``; None if the target is no CPU or the function has no blocks."""
        del tunable  # there is one schedule, nothing to tune
        root = func.body.block if isinstance(func.body, BlockRealize) else None
        if not is_cpu(target) or root is None or root.name_hint != "root":
            return None
        free = {int(index) for index in func.attrs.get(LAYOUT_FREE_BUFFERS, ())}
        weights = {func.buffer_map[param] for at, param in enumerate(func.params) if at in free}
        return default.schedule(Schedule(func, debug_mask="none"), machine_of(target), weights)
