"""Schedules of TensorIR. So far the comparison that tests of schedules use."""

from weft.support.facade import module_getattr

_PLANNED = dict.fromkeys(
    "Schedule ScheduleState StmtSRef BlockScope BlockDependenceInfo Instruction Trace Dependency "
    "BlockRV LoopRV ExprRV ScheduleDebugMask InstructionKind DepKind analysis instruction state "
    "trace transform".split(),
    "schedules",
)
__getattr__, __dir__ = module_getattr(
    __name__, {"ScheduleError": "weft.support.errors"}, ("testing",), _PLANNED
)
