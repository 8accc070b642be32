"""torch's list of the operators that it makes of others, asked for once in a decomposition.

``run_decompositions`` has torch enter every such operator into ``torch.ops``, and has it do so
again for each namespace (``aten``, ``quantized``, ``torchvision`` ...), twice. For a small model
that is nearly half of the time of its import.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from torch._export import utils

_FUNCTION: Final = "_materialize_cpp_cia_ops"
"""The private function of torch that enters them."""


@contextmanager
def operators_listed_once() -> Iterator[None]:
    """Within, torch enters the operators when it first needs them, and not again.

    An operator that is registered after that belongs to no program that is decomposed here. This
    changes torch for the whole process: hold ``EXPORTING``. A torch that has no such function is
    left as it is.
    """
    enter = getattr(utils, _FUNCTION, None)
    if enter is None:
        yield
        return
    is_entered = False

    def enter_once() -> None:
        nonlocal is_entered
        if not is_entered:
            enter()
            is_entered = True

    setattr(utils, _FUNCTION, enter_once)
    try:
        yield
    finally:
        setattr(utils, _FUNCTION, enter)
