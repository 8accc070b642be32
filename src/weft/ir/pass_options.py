"""Checks of what a PassContext is given: names of passes that exist, instruments with a hook.

The name of a pass is known once the pass is defined. weft's own passes are imported when used;
so if a name is not known, their packages are asked for the names they have.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from weft.support import slots
from weft.support.errors import PassError

PASS_NAMES: Final[set[str]] = set()
"""The names of all passes that were defined in this process."""

HOOKS: Final = (
    "enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass",
    "run_after_codegen", "run_after_build",
)  # fmt: skip
"""The methods of instruments; an instrument has at least one of them."""

CHANGES_NOTHING: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("tir.debug_keep_trivial_loop", "tir.enable_debug", "tir.is_entry_func", "tir.noalias"),
        "an option that no pass of TVM 0.20 reads, nor of weft",
    ),
    **dict.fromkeys(
        ("tir.disable_cse_tir", "tir.enable_equiv_terms_in_cse_tir"),
        "no pass shares equal expressions: LLVM does",
    ),
    **dict.fromkeys(
        (
            "cuda.kernels_output_dir", "relax.backend.use_cuda_graph",
            "relax.fallback_device_type", "tir.detect_global_barrier", "tir.merge_static_smem",
            "tir.ptx_ldg32", "tir.use_async_copy", "tir.vtcm_capacity",
        ),
        "for processors that weft has no code generation for",
    ),
    "tir.instrument_bound_checkers": "indices are always checked",
}  # fmt: skip
"""Options of TVM 0.20 that a context takes and no pass asks for; each with the reason why."""


def check_kind(what: str, value: object, kind: type) -> None:
    """Raise PassError unless an option is None or a list (or a dict, by ``kind``)."""
    if value is not None and (not isinstance(value, kind) or isinstance(value, (str, bytes))):
        wanted = "a dict" if kind is Mapping else "a list"
        hint = f"; write [{value!r}]" if isinstance(value, str) else ""
        raise PassError(f"PassContext: {what}: expected {wanted}, got {type(value).__name__}{hint}")


def check_opt_level(level: object) -> None:
    """Raise PassError unless the level is an int."""
    if not isinstance(level, int):
        raise PassError(
            f"PassContext: opt_level: expected an int, 0 to 4, got {type(level).__name__}"
        )


def checked_names(what: str, names: Iterable[object] | None) -> tuple[str, ...]:
    """The names of passes; PassError with the nearest name for one that no pass has."""
    checked: list[str] = []
    for name in names or ():
        if not isinstance(name, str):
            raise PassError(
                f"PassContext: {what}: expected names of passes, got {type(name).__name__}; the "
                "name of a pass is its info.name"
            )
        if name not in PASS_NAMES and name not in (known := slots.pass_names.get()()):
            nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
            same = [item for item in known if item.rpartition(".")[2] == name]
            hint = f"; did you mean {(same or nearest)[0]!r}?" if same or nearest else ""
            raise PassError(
                f"PassContext: {what}: there is no pass {name!r}{hint} (one of your own is known "
                "once it is defined)"
            )
        checked.append(name)
    return tuple(checked)


def checked_instruments(instruments: Iterable[object] | None) -> list[Any]:
    """The instruments; PassError for what has none of the hooks, or is a class."""
    given = list(instruments or ())
    for place, instrument in enumerate(given):
        if isinstance(instrument, type):
            raise PassError(
                f"PassContext: instruments[{place}]: expected an object, got the class "
                f"{instrument.__name__}; make one: {instrument.__name__}()"
            )
        if not any(hasattr(instrument, hook) for hook in HOOKS):
            raise PassError(
                f"PassContext: instruments[{place}]: expected an object with one of "
                f"{', '.join(HOOKS)}, got {type(instrument).__name__}"
            )
    return given
