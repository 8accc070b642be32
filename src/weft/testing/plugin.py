"""The pytest plugin: marks, ``target`` and ``dev``, and parameters that change together.

Load it with ``pytest_plugins = ["weft.testing.plugin"]`` in the top ``conftest.py``, or with
``-p weft.testing.plugin``. It is no entry point on purpose: users who have weft installed and test
something else must not get fixtures named ``target`` and ``dev``, nor tests in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

from weft.runtime.device import Device
from weft.target.target import TargetLike
from weft.testing import features, targets
from weft.testing.fixtures import GROUP, USES

MARKS: Final = (
    "weft_targets: the targets a test runs on",
    "weft_exclude_targets: kinds of targets a test does not run on",
    "weft_known_failing_targets: kinds of targets a test is expected to fail on",
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks: those above, and one for each feature."""
    for line in MARKS:
        config.addinivalue_line("markers", line)
    for feature in features.Feature.all():
        config.addinivalue_line("markers", f"{feature.name}: uses {feature.long_name}")


def pytest_report_header() -> str:
    """The targets of this run."""
    return f"weft targets: {'; '.join(text for text, _ in targets.enabled_targets())}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give ``target`` its values, and tied parameters theirs."""
    _parametrize_groups(metafunc)
    _parametrize_target(metafunc)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count the uses of cached fixtures; sort tests by the order of the source.

    pytest puts tests that share a parameter next to each other. In the order of the source a
    cached value can be dropped earlier, and the output is easier to read.
    """
    for item in items:
        if not _is_skipped(item):
            _count_uses(item)
    files = {path: number for number, path in enumerate(dict.fromkeys(i.path for i in items))}
    items.sort(key=lambda item: (files[item.path], item.location[1] or 0, _function_name(item)))


def _function_name(item: pytest.Item) -> str:
    return item.location[2].partition("[")[0]


def _is_skipped(item: pytest.Item) -> bool:
    if item.get_closest_marker("skip") is not None:
        return True
    return any(mark.args and mark.args[0] is True for mark in item.iter_markers("skipif"))


def _count_uses(item: pytest.Item) -> None:
    info = getattr(item, "_fixtureinfo", None)
    for definitions in getattr(info, "name2fixturedefs", {}).values():
        uses = getattr(definitions[-1].func, USES, None)
        if uses is not None:
            uses.planned += 1


def _target_to_requirement(target: TargetLike) -> list[pytest.MarkDecorator]:
    """The marks of a test that needs a target; none if the kind of target is unknown."""
    try:
        kind = targets.kind_of(target)
    except (ValueError, TypeError):
        return []
    feature = features.Feature._all_features.get(kind)
    return [] if feature is None else feature.marks()


def _parametrize_target(metafunc: pytest.Metafunc) -> None:
    if "target" not in metafunc.fixturenames or _fixture_of(metafunc, "target") is not None:
        return
    marks = list(metafunc.definition.iter_markers())
    own = [mark for mark in marks if mark.name == "parametrize" and "target" in _names(mark)]
    for mark in own:
        _require_targets(mark)
    if own:
        return

    def of_name(name: str) -> list[pytest.Mark]:
        return [mark for mark in marks if mark.name == name]

    params = targets.params_of(of_name, _target_to_requirement)
    metafunc.parametrize("target", params, scope="session")


def _names(mark: pytest.Mark) -> list[str]:
    names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
    split = names.split(",") if isinstance(names, str) else names
    return [name.strip() for name in split]


def _require_targets(mark: pytest.Mark) -> None:
    """Give each row of ``parametrize`` the marks of its target, so that it may be skipped."""
    rows = mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues")
    if not isinstance(rows, list):  # an iterator is used up by reading, a tuple cannot be changed
        return
    names = _names(mark)
    for number, row in enumerate(rows):
        given = isinstance(row, ParameterSet)
        values = row.values if given else (row,) if len(names) == 1 else tuple(row)
        marks = [*(row.marks if given else ()), *_target_to_requirement(_at(values, names))]
        rows[number] = pytest.param(*values, marks=marks, id=row.id if given else None)


Value = TypeVar("Value")


def _at(values: Sequence[Value], names: list[str]) -> Value:
    return values[names.index("target")]


def _fixture_of(metafunc: pytest.Metafunc, name: str) -> object:
    """The function of the fixture of that name that the test would use."""
    definitions = metafunc._arg2fixturedefs.get(name)
    return definitions[-1].func if definitions else None


def _parametrize_groups(metafunc: pytest.Metafunc) -> None:
    groups: dict[int, list[tuple[str, Sequence[object], Sequence[str] | None]]] = {}
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
def dev(target: TargetLike) -> Device:
    """The device of ``target``."""
    return targets.device_of(target)
