"""Settings that every test runs under."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("MPLBACKEND", "Agg")

# `make test` gives the same verdict twice; the fuzzers of tests/fuzz print and take their seeds.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
