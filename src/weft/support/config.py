"""Settings from the environment: read, checked, and refused with the name and the value.

Every variable that weft reads is in ``VARIABLES``, with what it means; reading another is a bug.
"""

from __future__ import annotations

import os
from typing import Final

from weft.support.errors import InternalError, IRValueError

VARIABLES: Final[dict[str, str]] = {
    "WEFT_CACHE_DIR": "folder of the caches (default: weft in XDG_CACHE_HOME, or ~/.cache/weft)",
    "WEFT_CACHE_SIZE": "size limit of the object cache in MiB",
    "WEFT_COMPILE_WORKERS": "processes that compile (default: the affinity mask; 0: only this one)",
    "WEFT_FULL_TRACEBACK": "1 keeps weft's own frames in tracebacks: of scripts, and in notebooks",
    "WEFT_HOT_SECONDS": "seconds of calls after which sizes get a program (default: 60)",
    "WEFT_HOT_SIZE": "size limit of the weights of such programs of one model in MiB",
    "WEFT_LOG": "what is logged to standard error: info, or weft.driver=debug,info",
    "WEFT_MODEL_CACHE_SIZE": "size limit of the cache of whole models in MiB",
    "WEFT_NO_CACHE": "1 turns both caches off",
    "WEFT_NUM_THREADS": "threads of parallel loops (default: the affinity mask)",
    "WEFT_PERF": "1 tells perf and gdb names and lines of kernels, by files in /tmp",
}


def environment_text(name: str) -> str | None:
    """The value of a variable, or None when it is not set or empty."""
    if name not in VARIABLES:
        raise InternalError(f"environment variable {name} is not in weft.support.config.VARIABLES")
    return os.environ.get(name) or None


def environment_int(name: str, minimum: int = 0) -> int | None:
    """The value of a variable as an integer of at least ``minimum``, or None when not set."""
    text = environment_text(name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError as error:
        raise IRValueError(f"{name}: expected an integer, got {text!r}") from error
    if value < minimum:
        raise IRValueError(f"{name}: expected an integer of at least {minimum}, got {value}")
    return value


def usable_processors() -> int:
    """How many processors this process may use: those of its affinity mask, where there is one."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def worker_count() -> int:
    """How many processes compile: ``WEFT_COMPILE_WORKERS`` if set, else the usable processors."""
    configured = environment_int("WEFT_COMPILE_WORKERS")
    return usable_processors() if configured is None else configured


def environment_flag(name: str) -> bool:
    """Whether a variable is set to something other than 0, false, no or off."""
    text = environment_text(name)
    return text is not None and text.lower() not in ("0", "false", "no", "off")
