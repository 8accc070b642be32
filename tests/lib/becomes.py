"""``becomes``: a pass makes ``expected`` of ``before``, and both compute the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import Pass
from weft.tir.function import PrimFunc
from weft.tir.interp import run


def results(func: PrimFunc) -> list[np.ndarray | int]:
    random = np.random.default_rng(0)
    given: list[np.ndarray | int] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            given.append(int(random.integers(0, 5)))
            continue
        shape = [getattr(extent, "value", 4) for extent in buffer.shape]
        given.append(random.integers(0, 5, shape).astype(buffer.dtype.numpy))
    run(func, *given)
    return given


@pytest.fixture(scope="session")
def becomes() -> Callable[[Pass, PrimFunc, PrimFunc], None]:
    def check(step: Pass, before: PrimFunc, expected: PrimFunc) -> None:
        module = IRModule({"main": before.with_attr("global_symbol", "main")})
        after = step(module)["main"]
        assert_structural_equal(after, expected.with_attr("global_symbol", "main"))
        for one, other in zip(results(before), results(after), strict=True):
            np.testing.assert_array_equal(one, other)

    return check
