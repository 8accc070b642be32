"""Helpers of tests of graph programs: ``relax.testing``."""

from weft.relax.testing import nn, runtime_builtin, transform, vm

__all__ = ["nn", "runtime_builtin", "transform", "vm"]
