"""The names of passes that ``disabled_pass`` and ``required_pass`` accept."""

from __future__ import annotations

import functools
from collections.abc import Callable

import weft.relax.transform
import weft.tir.transform
from weft.driver.pipeline import get_pipeline, lower_tir
from weft.ir.pass_options import PASS_NAMES
from weft.ir.transform import Pass
from weft.support import slots
from weft.support.errors import TVMError


@functools.cache
def own_names() -> frozenset[str]:
    """The names of weft's own passes: those of its packages and those of its pipelines."""
    packages = (("", weft.relax.transform), ("tir.", weft.tir.transform))
    steps = (*get_pipeline("weft").passes, *lower_tir().passes)
    return frozenset([step.info.name for step in steps]) | frozenset(
        [
            pass_name
            for prefix, package in packages
            for name in dir(package)
            if name[:1].isupper()
            if (pass_name := _name_of(getattr(package, name), f"{prefix}{name}")) is not None
        ]
    )


def _name_of(maker: Callable[..., object], usual: str) -> str | None:
    """The name of the pass that a function returns; ``usual`` if it cannot be called without
    arguments. None if it returns no pass.
    """
    if isinstance(maker, type) and not issubclass(maker, Pass):
        return None
    try:
        step = maker()
    except (TypeError, TVMError):
        return usual
    return step.info.name if isinstance(step, Pass) else None


def pass_names() -> set[str]:
    """weft's own names, and those of all passes that were defined in this process."""
    return PASS_NAMES | own_names()


slots.pass_names.fill(pass_names)
