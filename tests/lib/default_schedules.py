"""Programs under their default schedules: as written, as scheduled and native, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import weft
from weft import dlight, te, tir, topi
from weft.backends.cpu.schedules import default
from weft.driver.pipeline import lower_tir
from weft.ir.module import IRModule
from weft.target.machine import machine_of
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.topi.nn.convolution_blocked import conv_blocked

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2 -l1d-cache-bytes=32768")
"""Vectors of four floats, so that small shapes have whole tiles and tails."""
RNG = np.random.default_rng(11)

Program = tuple[list[Any], Any]
"""Inputs and the result, as ``te.create_prim_func`` takes them in one list."""


def scheduled(func: PrimFunc) -> PrimFunc:
    """The function by its default schedule, every step checked and the trace replayed."""
    new: PrimFunc = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    return new


def results_of(
    func: PrimFunc, arrays: Sequence[np.ndarray], shape: Sequence[int], dtype: str = "float32"
) -> tuple[PrimFunc, np.ndarray, np.ndarray, np.ndarray]:
    """The schedule, and results: as written and as scheduled, interpreted, and native.

    The interpreter, which knows the bounds of all memory, also runs what lowering makes of it.
    """
    new = scheduled(func)
    out = [np.full(shape, 7, dtype) for _ in range(4)]
    run(func, *arrays, out[0])
    run(new, *arrays, out[1])
    run(lower_tir()(weft.IRModule({"main": new}))["main"], *arrays, out[3])
    np.testing.assert_allclose(out[3], out[1], rtol=1e-4, atol=1e-5)
    given = [weft.nd.array(array) for array in (*arrays, out[2])]
    weft.build(new, SMALL)["main"](*given)
    return new, out[0], out[1], given[-1].numpy()


def assert_results_are_kept(tensors: list[Any]) -> None:
    """Of inputs and the result: the same as written, scheduled and native, on random floats."""
    shapes = [[int(extent) for extent in tensor.shape] for tensor in tensors]
    arrays = [floats(*shape) for shape in shapes[:-1]]
    _, expected, interpreted, native = results_of(te.create_prim_func(tensors), arrays, shapes[-1])
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def floats(*shape: int) -> np.ndarray:
    """Normally distributed float32; other ones at each call."""
    return RNG.normal(size=shape).astype("float32")


def matmul(m: int, n: int, k: int, batch: tuple[int, ...] = ()) -> Callable[[], Program]:
    """(*batch, m, k) @ (*batch, k, n)."""

    def program() -> Program:
        a = te.placeholder((*batch, m, k), name="A")
        b = te.placeholder((*batch, k, n), name="B")
        return [a, b], topi.matmul(a, b)

    return program


def product_and_relu(m: int, n: int, k: int) -> Callable[[], Program]:
    """relu((m, k) @ (n, k) transposed + bias)."""

    def program() -> Program:
        a, b = te.placeholder((m, k), name="A"), te.placeholder((n, k), name="B")
        bias = te.placeholder((n,), name="bias")
        return [a, b, bias], topi.nn.relu(topi.add(topi.matmul(a, b, False, True), bias))

    return program


def of_one(shape: tuple[Any, ...], compute: Callable[[Any], Any]) -> Callable[[], Program]:
    """What is computed of one tensor of float32."""

    def program() -> Program:
        x = te.placeholder(shape, name="x")
        return [x], compute(x)

    return program


def convolution(
    data: tuple[Any, ...], kernel: tuple[Any, ...], **options: Any
) -> Callable[[], Program]:
    """A convolution NCHW with padding 1 where ``options`` say nothing else."""

    def program() -> Program:
        x, w = te.placeholder(data, name="x"), te.placeholder(kernel, name="w")
        arguments = {"strides": 1, "padding": 1, "dilation": 1, **options}
        return [x, w], topi.nn.conv2d(x, w, **arguments)

    return program


def blocked(
    data: tuple[Any, ...], kernel: tuple[Any, ...], layouts: tuple[str, str, str]
) -> Callable[[], Program]:
    """A convolution on blocks of channels, and relu."""

    def program() -> Program:
        x, w = te.placeholder(data, name="x"), te.placeholder(kernel, name="w")
        return [x, w], topi.nn.relu(conv_blocked(x, w, 1, 1, 1, 1, layouts))

    return program


def native_source(func: PrimFunc, target: str, fmt: str = "asm") -> tuple[IRModule, str]:
    """The module by its default schedule, and its code: assembly, or LLVM's IR with "ll"."""
    new = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    return new.mod, weft.build(new.mod, target).get_source(fmt)
