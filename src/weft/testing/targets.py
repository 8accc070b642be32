"""On which targets a test runs: the enabled ones, and the marks that choose among them.

``TVM_TEST_TARGETS`` (targets with ``;`` between them) restricts the list, as it does for TVM.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any, Final

import pytest
from _pytest.mark import ParameterSet

from weft.runtime.device import Device, device
from weft.target.target import Target, TargetLike

DEFAULT_TEST_TARGETS: Final = ["llvm"]
"""weft generates code for CPUs."""


def target_text(target: TargetLike) -> str:
    """A target as tests write it."""
    return target if isinstance(target, str) else str(Target(target))


def kind_of(target: TargetLike) -> str:
    """The kind of a target: ``llvm`` of ``llvm -mcpu=native``."""
    if isinstance(target, str) and not target.lstrip().startswith("{"):
        return target.split()[0]
    return str(Target(target).kind.name)


def device_of(target: TargetLike) -> Device:
    """The device that code of a target runs on."""
    return device(kind_of(target))


def test_targets() -> list[str]:
    """The targets to be tested: of the environment if one of them can run here, else the default.

    If none of a list can run here, the default is used, and the log says so.
    """
    text = os.environ.get("TVM_TEST_TARGETS", "")
    wanted = list(dict.fromkeys([item.strip() for item in text.split(";") if item.strip()]))
    if wanted and not any(can_run(item) for item in wanted):
        logging.getLogger("weft").warning(
            "TVM_TEST_TARGETS=%s: code for none of them can run here; testing on %s",
            text,
            ", ".join(DEFAULT_TEST_TARGETS),
        )
        wanted = []
    return wanted or list(DEFAULT_TEST_TARGETS)


test_targets.__test__ = False  # type: ignore[attr-defined] # pytest's word for "no test"


def device_enabled(target: TargetLike) -> bool:
    """Whether tests of that target run here."""
    kinds = [kind_of(item) for item in test_targets()]
    return kind_of(target) in kinds and can_run(target)


def can_run(target: TargetLike) -> bool:
    """Whether code for that target can be compiled and run here."""
    return kind_of(target) in ("llvm", "c") and bool(device_of(target).exist)


def enabled_targets() -> list[tuple[str, Device]]:
    """``(target, device)`` of every target that tests run on here."""
    return [(text, device_of(text)) for text in test_targets() if can_run(text)]


def parametrize_targets(*args: TargetLike | Callable[..., object]) -> Any:
    """Run a test, which takes ``target`` and ``dev``, on those targets.

    Written ``@parametrize_targets("llvm", "cuda")``, or bare for the enabled targets.
    """
    if len(args) == 1 and callable(args[0]) and not isinstance(args[0], Target):
        return pytest.mark.weft_targets()(args[0])
    return pytest.mark.weft_targets(*args)


def exclude_targets(*args: TargetLike) -> pytest.MarkDecorator:
    """Leave targets of those kinds out of the ones a test runs on."""
    return pytest.mark.weft_exclude_targets(*args)


def known_failing_targets(*args: TargetLike) -> pytest.MarkDecorator:
    """Expect a test to fail on targets of those kinds."""
    return pytest.mark.weft_known_failing_targets(*args)


def params_of(
    function_marks: Callable[[str], list[pytest.Mark]],
    requirement: Callable[[TargetLike], list[pytest.MarkDecorator]],
) -> list[ParameterSet]:
    """The parameters ``target`` of a test with those marks (``name -> marks``).

    ``requirement`` gives the marks of a test that needs a target.
    """
    chosen = [item for mark in function_marks("weft_targets") for item in mark.args]
    targets = chosen or test_targets()
    excluded = {kind_of(a) for m in function_marks("weft_exclude_targets") for a in m.args}
    failing = {kind_of(a) for m in function_marks("weft_known_failing_targets") for a in m.args}
    params = []
    for target in targets:
        kind = kind_of(target)
        if kind in excluded:
            continue
        marks = list(requirement(target))
        if kind in failing:
            marks.append(pytest.mark.xfail(reason=f"known to fail on {kind}"))
        params.append(pytest.param(target, marks=marks, id=target_text(target)))
    return params
