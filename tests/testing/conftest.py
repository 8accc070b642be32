"""These tests make the marks that the plugin registers; the plugin itself stays off."""

from __future__ import annotations

import pytest

from weft.testing import plugin


def pytest_configure(config: pytest.Config) -> None:
    """Make the plugin's marks known."""
    plugin.pytest_configure(config)
