"""``relax.testing``: helpers for tests of graph programs."""

from weft.relax.testing import ast_printer, nn, runtime_builtin, transform, vm
from weft.relax.testing.ast_printer import dump_ast

__all__ = ["ast_printer", "dump_ast", "nn", "runtime_builtin", "transform", "vm"]
