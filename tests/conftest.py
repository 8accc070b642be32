"""Settings that every test runs under."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# `make test` gives the same verdict twice; the fuzzers of tests/fuzz print and take their seeds.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

_KEPT = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the session (and the worker processes it starts) an object cache of its own."""
    if "WEFT_CACHE_DIR" not in os.environ:
        config.stash[_KEPT] = tempfile.TemporaryDirectory(prefix="weft-cache-")
        os.environ["WEFT_CACHE_DIR"] = config.stash[_KEPT].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove that cache."""
    kept = config.stash.get(_KEPT, None)
    if kept is not None:
        del os.environ["WEFT_CACHE_DIR"]
        kept.cleanup()
