"""Helpers: compile lowered PrimFuncs directly, without the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.backends.cpu.backend import BACKEND
from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.ndarray import array
from weft.target.target import as_target
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Ramp, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, ForKind


class Native:
    """A compiled PrimFunc that takes and returns numpy arrays."""

    def __init__(self, func: PrimFunc, target: Any = None, checks: bool = True) -> None:
        module = func if isinstance(func, IRModule) else IRModule({"main": func})
        self.compiled = BACKEND.emit(module, as_target(target or "llvm"), checks=checks)
        self.library = NativeLibrary(self.compiled.object_code)
        self.functions = {s.name: self.library.function(s) for s in self.compiled.specs}

    def __call__(self, *args: Any) -> Any:
        """Call ``main``; numpy arrays that it writes are updated."""
        given = [array(a) if isinstance(a, np.ndarray) else a for a in args]
        result = self.functions["main"](*given)
        for mine, theirs in zip(args, given, strict=True):
            if isinstance(mine, np.ndarray):
                mine[...] = theirs.numpy()
        return result


@pytest.fixture(scope="session")
def native() -> type[Native]:
    return Native


def elementwise_func(
    dtypes: list[str], out: str, compute: Callable[..., Any], n: int, lanes: int = 1
) -> PrimFunc:
    """out[i] = compute(a0[i], a1[i], ...), ``lanes`` elements at a time."""
    inputs = [decl_buffer((n,), dtype, f"a{k}") for k, dtype in enumerate(dtypes)]
    result = decl_buffer((n,), out, "out")
    i = Var("i", "int32")
    index = i if lanes == 1 else Ramp(i * lanes, IntImm("int32", 1), IntImm("int32", lanes))
    body = BufferStore(result, compute(*[buffer[index] for buffer in inputs]), [index])
    loop = For(i, 0, n // lanes, ForKind.SERIAL, body)
    return PrimFunc([*inputs, result], loop, attrs={"global_symbol": "main", "tir.noalias": True})


@pytest.fixture(scope="session")
def elementwise() -> Callable[..., Any]:
    """Apply ``compute`` to arrays in native code: elementwise(compute, out, *arrays, lanes=1)."""

    def apply(
        compute: Callable[..., Any], out: str, *arrays: Any, lanes: int = 1, dtypes=None,
        target=None,
    ):  # fmt: skip
        n = len(arrays[0])
        names = dtypes or [str(a.dtype) for a in arrays]
        func = elementwise_func(names, out, compute, n, lanes)
        result = array(np.zeros(n, out if out in ("bool",) else _numpy(out)))
        run = Native(func, target).functions["main"]
        run(*[array(a, dtype=d) if str(a.dtype) != d else array(a) for a, d in
              zip(arrays, names, strict=True)], result)  # fmt: skip
        return result.numpy()

    return apply


def _numpy(dtype: str) -> Any:
    if dtype == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(dtype)
