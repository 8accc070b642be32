"""Operators of neural networks: ``relax.op.nn.<name>``, printed ``R.nn.<name>``.

As in ``relax.op``, an operator can be found here by its name as soon as it is defined.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.relax.expr import Call
from weft.relax.op.definition import FUNCTIONS, function_of_plugin
from weft.relax.op.nn import (
    activation,
    convolution,
    normalization,
    padding,
    pool_indices,
    pooling,
    rearrange,
    recurrent,
    windows,
)
from weft.relax.op.nn.attention import attention  # not the module of that name
from weft.relax.op.nn.dense import dense  # likewise
from weft.relax.op.nn.recurrent_layer import recurrent_layer  # likewise
from weft.support.missing import MissingNameError


def _names() -> list[str]:
    return sorted([name.removeprefix("nn.") for name in FUNCTIONS if name.startswith("nn.")])


__all__ = list(_names())


def __getattr__(name: str) -> Callable[..., Call]:
    """The operator of that name."""
    function = FUNCTIONS.get(f"nn.{name}") or function_of_plugin(f"nn.{name}", __name__)
    if function is None:
        raise MissingNameError(
            f"there is no graph operator nn.{name}", name, _names, "relax.op.nn."
        )
    return function


def __dir__() -> list[str]:
    return [*globals(), *_names()]
