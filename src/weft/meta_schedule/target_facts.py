"""What rules and postprocessors ask about the target of a task."""

from __future__ import annotations

from weft.meta_schedule.protocols import Context
from weft.support.config import usable_processors
from weft.support.errors import IRValueError
from weft.target import Target


def target_of(context: Context, part: str) -> Target:
    """The target of a task; an error that names the part that needs one."""
    if context.target is None:
        raise IRValueError(
            f"{part}: the task has no target; give TuneContext one, such as target='llvm'"
        )
    return context.target


def cores(target: Target) -> int:
    """The cores that schedules assume: ``num-cores``, or those that this process may use."""
    return target.num_cores or usable_processors()


def number(target: Target, option: str) -> int | None:
    """An option of a target that is a number; None if the target does not say."""
    value = target.attrs.get(option)
    return None if value is None else int(value)


def needed_number(target: Target, option: str, part: str) -> int:
    """As ``number``; an error that names the part if the target does not say."""
    value = number(target, option)
    if value is None:
        raise IRValueError(
            f"{part}: the target {target} does not say its {option}; give it, as in "
            f"'{target.kind.name} -{option}=1024', or use a tag such as nvidia/nvidia-a100"
        )
    return value


def warp_size(target: Target) -> int | None:
    """The threads that run in step; None where there are none."""
    size = number(target, "thread_warp_size") or target.kind.defaults.get("warp")
    return None if size is None else int(str(size))


def compute_capability(target: Target) -> int | None:
    """80 of ``-arch=sm_80``; None for other architectures."""
    name = target.arch.removeprefix("sm_")
    return int(name) if name.isdigit() and target.arch.startswith("sm_") else None
