"""The pytest plugin: marks, ``target`` and ``dev``, and parameters that go together.

Load it with ``-p weft.testing.plugin`` or ``pytest_plugins = ["weft.testing.plugin"]``.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from weft.runtime.device import Device
from weft.testing import targets
from weft.testing.fixtures import GROUP

MARKS: Final = (
    "gpu: needs or uses a GPU",
    "weft_targets: the targets a test runs on",
    "weft_exclude_targets: kinds of targets a test does not run on",
    "weft_known_failing_targets: kinds of targets a test is expected to fail on",
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    for line in MARKS:
        config.addinivalue_line("markers", line)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``target`` its values, and tied parameters theirs."""
    _parametrize_target(metafunc)
    _parametrize_groups(metafunc)


def _parametrize_target(metafunc: pytest.Metafunc) -> None:
    if "target" not in metafunc.fixturenames or _fixture_of(metafunc, "target") is not None:
        return
    marks = list(metafunc.definition.iter_markers())
    if any(_names_target(mark) for mark in marks if mark.name == "parametrize"):
        return

    def of_name(name: str) -> list[Any]:
        return [mark for mark in marks if mark.name == name]

    params = targets.params_of(of_name)
    metafunc.parametrize("target", params, scope="session")


def _names_target(mark: pytest.Mark) -> bool:
    names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
    split = names.split(",") if isinstance(names, str) else names
    return "target" in [name.strip() for name in split]


def _fixture_of(metafunc: pytest.Metafunc, name: str) -> Any:
    """The function of the fixture of that name that the test would use."""
    definitions = metafunc._arg2fixturedefs.get(name)
    return definitions[-1].func if definitions else None


def _parametrize_groups(metafunc: pytest.Metafunc) -> None:
    groups: dict[int, list[tuple[str, Any, Any]]] = {}
    for name in metafunc.fixturenames:
        entry = getattr(_fixture_of(metafunc, name), GROUP, None)
        if entry is not None:
            group, values, ids = entry
            groups.setdefault(group, []).append((name, values, ids))
    for members in groups.values():
        names = [name for name, _, _ in members]
        rows = list(zip(*[values for _, values, _ in members], strict=True))
        metafunc.parametrize(names, rows, indirect=True, ids=members[0][2])


@pytest.fixture
def dev(target: Any) -> Device:
    """The device of ``target``."""
    return targets.device_of(target)
