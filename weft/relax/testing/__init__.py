"""Helpers of tests of graph programs: ``relax.testing``."""

from weft.relax.testing import runtime_builtin, transform, vm

__all__ = ["runtime_builtin", "transform", "vm"]
