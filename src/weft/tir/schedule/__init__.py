"""Schedules of TensorIR: the class ``Schedule``, its traces and errors."""

from weft.support.facade import module_getattr

_NAMES = {
    "BlockDependenceInfo": "weft.tir.schedule.block_dependence_info",
    "BlockRV": "weft.tir.schedule.random_variable",
    "BlockScope": "weft.tir.schedule.dependence",
    "DepKind": "weft.tir.schedule.dependence",
    "Dependency": "weft.tir.schedule.dependence",
    "ExprRV": "weft.tir.schedule.random_variable",
    "Instruction": "weft.tir.schedule.instruction",
    "InstructionKind": "weft.tir.schedule.instruction",
    "LoopRV": "weft.tir.schedule.random_variable",
    "Schedule": "weft.tir.schedule.schedule",
    "ScheduleDebugMask": "weft.tir.schedule.state",
    "ScheduleError": "weft.support.errors",
    "ScheduleState": "weft.tir.schedule.state",
    "StmtSRef": "weft.tir.schedule.tree",
    "Trace": "weft.tir.schedule.trace",
    "register_reducer": "weft.tir.reducer",
}
__getattr__, __dir__ = module_getattr(
    __name__, _NAMES, ("analysis", "instruction", "state", "testing", "transform")
)
