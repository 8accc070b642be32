"""TVM's side of ``benchmarks.tuned_beside_tvm``: runs in a Python that has TVM, without weft.

    python tvm_operators.py tune KIND SIZES FOLDER     # searches until it is killed
    python tvm_operators.py time KIND SIZES FOLDER     # the fastest form that the folder has

The second writes the result for the arrays in ``FOLDER/inputs.npz`` to ``FOLDER/result.npy``; then
it reads seconds, a line each, and prints the shortest call in so many seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

TRIALS: Final = 1_000_000


def operator_of(kind: str, sizes: tuple[int, ...]) -> Any:
    """The operator as a PrimFunc."""
    te, topi = importlib.import_module("tvm.te"), importlib.import_module("tvm.topi")

    def argument(name: str, *shape: int) -> Any:
        return te.placeholder(shape, name=name, dtype="float32")

    if kind == "product":
        batch, rows, depth, columns = sizes
        x, w = argument("x", batch, rows, depth), argument("w", batch, depth, columns)
        step = te.reduce_axis((0, depth), name="k")
        result = te.compute(
            (batch, rows, columns),
            lambda b, i, j: te.sum(x[b, i, step] * w[b, step, j], axis=step),
            name="product",
        )
        return te.create_prim_func([x, w, result])
    if kind == "convolution":
        channels, filters, size, window = sizes
        x = argument("x", 1, channels, size, size)
        w = argument("w", filters, channels, window, window)
        result = topi.nn.conv2d_nchw(x, w, 1, window // 2, 1)
        return te.create_prim_func([x, w, result])
    if kind == "depthwise":
        channels, size, window = sizes
        x, w = argument("x", 1, channels, size, size), argument("w", channels, 1, window, window)
        result = topi.nn.depthwise_conv2d_nchw(x, w, 1, window // 2, 1)
        return te.create_prim_func([x, w, result])
    x = argument("x", *sizes)
    if kind == "largest":
        result = topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    else:
        result = topi.nn.softmax(x)
    return te.create_prim_func([x, result])


def target() -> Any:
    """This machine."""
    tvm = importlib.import_module("tvm")
    host = tvm.target.Target.from_device("cpu")
    return tvm.target.Target({**dict(host.export()), "num-cores": os.cpu_count()})


def meta_schedule() -> Any:
    """TVM's MetaSchedule, which has moved."""
    for name in ("tvm.s_tir.meta_schedule", "tvm.meta_schedule"):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise SystemExit("this TVM has no MetaSchedule")


def tune(func: Any, folder: Path) -> None:
    """Search until somebody ends the process; what was measured is in the folder."""
    meta_schedule().tune_tir(
        mod=func, target=target(), work_dir=str(folder), max_trials_global=TRIALS,
        num_trials_per_iter=16,
    )  # fmt: skip


def fastest(func: Any, folder: Path) -> Any:
    """The built function: the fastest form in the folder, else as written."""
    tvm, ms = importlib.import_module("tvm"), meta_schedule()
    scheduled = None
    if (folder / "database_tuning_record.json").is_file():
        database = ms.database.JSONDatabase(work_dir=str(folder))
        scheduled = ms.tir_integration.compile_tir(database, func, target())
    module = tvm.IRModule({"main": func}) if scheduled is None else scheduled.mod
    return tvm.compile(module, target=target())


def serve(func: Any, folder: Path) -> None:
    """Compute once, then time calls as standard input asks."""
    tvm = importlib.import_module("tvm")
    call = fastest(func, folder)["main"]
    inputs = [tvm.runtime.tensor(array) for array in np.load(folder / "inputs.npz").values()]
    shape = [int(extent) for extent in func.buffer_map[func.params[-1]].shape]
    result = tvm.runtime.tensor(np.zeros(shape, "float32"))
    call(*inputs, result)
    np.save(folder / "result.npy", result.numpy())
    print("ready", flush=True)
    for line in sys.stdin:
        end, least = time.perf_counter() + float(line), float("inf")
        while (begin := time.perf_counter()) < end:
            call(*inputs, result)
            least = min(least, time.perf_counter() - begin)
        print(least, flush=True)


def main() -> None:
    """Do what the command line says."""
    _, action, kind, sizes, folder = sys.argv
    func = operator_of(kind, tuple([int(size) for size in sizes.split("x")]))
    (tune if action == "tune" else serve)(func, Path(folder))


if __name__ == "__main__":
    main()
