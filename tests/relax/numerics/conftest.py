"""Tables build only the rows that the session runs."""

from __future__ import annotations

import pytest

from tests.lib.operator_cases import Case, Table


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell each table which of its rows were collected and not deselected."""
    tests = [item for item in session.items if isinstance(item, pytest.Function)]
    rows = [item.callspec.params.get("case") for item in tests if hasattr(item, "callspec")]
    cases = [row for row in rows if isinstance(row, Case)]
    for module in {item.module for item in tests}:
        for table in vars(module).values():
            if isinstance(table, Table):
                table.build_only(cases)
