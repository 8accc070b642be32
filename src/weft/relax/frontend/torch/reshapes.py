"""Reshapes whose result shares memory with its source at some sizes: a trace takes it for a copy.

torch reshapes a tensor without a copy where its strides allow that. Of rows that were padded to
whole chunks and cut back they do where nothing was cut off, so a trace at other sizes notes that
something was, as if the model did something else then. The elements are the same either way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import sympy
import torch
from torch.fx.experimental.sym_node import SymNode

_RESHAPES: Final = (torch.ops.aten.reshape.default, torch.ops.aten.flatten.using_ints)
"""Operators of C++, which call Python's objects that stand for sizes."""
_OF_STRIDES: Final = ("check_contiguous_sizes_strides", "_compute_stride")
"""What views ask in Python, a few calls above."""
_DEPTH: Final = 5


@contextmanager
def copied_reshapes() -> Iterator[None]:
    """Within, a reshape copies where only the sizes of inputs tell whether it must.

    This changes a class of torch for the whole process: hold ``EXPORTING``.
    """
    original = SymNode.guard_bool

    def guard_bool(self: SymNode, file: str, line: int) -> bool:
        if isinstance(self.expr, sympy.Ne) and _reshapes(sys._getframe(1)):
            known = self.shape_env._maybe_evaluate_static(self.expr)
            return known is None or bool(known)
        return bool(original(self, file, line))

    SymNode.guard_bool = guard_bool
    try:
        yield
    finally:
        SymNode.guard_bool = original


def _reshapes(frame: FrameType | None, depth: int = _DEPTH) -> bool:
    """Whether the code that asks is that of an operator that reshapes."""
    if frame is None or depth == 0:
        return False
    is_asking = frame.f_code.co_qualname.startswith(_OF_STRIDES)
    is_asking = is_asking or any(frame.f_locals.get("self") is way for way in _RESHAPES)
    return is_asking or _reshapes(frame.f_back, depth - 1)
