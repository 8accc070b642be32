"""The zoo of models: seconds from PyTorch to something that runs, and a call beside PyTorch's.

    python benchmarks/zoo.py [NAME ...]

For each architecture of ``tests.lib.zoo``: seconds of ``torch.export`` alone and of
``weft.compile`` (export included, nothing from the cache), milliseconds of a call of both, their
ratio, and the largest difference as a share of the output's magnitude. Kernels are not scheduled
yet: they run as written, so this shows the importer and the compiler, not the speed of the code.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

import weft
from tests.lib.zoo import ZOO, Architecture
from weft.relax.frontend.torch.capture import capture


def main(names: Sequence[str]) -> None:
    """Print a row for each architecture, or for those named."""
    warnings.simplefilter("ignore")
    heads = ("export s", "compile s", "weft ms", "torch ms", "ratio", "apart")
    print(f"{'model':<26}" + "".join([f"{head:>10}" for head in heads]))
    worst = 0.0
    chosen = [item for item in ZOO if not names or item.name in names]
    for architecture in chosen:
        try:
            worst = max(worst, row(architecture))
        except weft.TVMError as error:
            told = str(error).splitlines()[0][:90]
            print(f"{architecture.name:<26}{type(error).__name__}: {told}")
    print(f"{len(chosen)} models, the largest difference {worst:.1e}")


def row(architecture: Architecture) -> float:
    """Measure and print one model; its difference."""
    model = architecture.model()
    args, kwargs = architecture.example()
    start = time.perf_counter()
    capture(model, args, kwargs)
    exported = time.perf_counter() - start
    start = time.perf_counter()
    compiled = weft.compile(model, kwargs or args, cache=False)
    seconds = time.perf_counter() - start
    with torch.no_grad():
        apart = difference(leaves(compiled(*args, **kwargs)), leaves(model(*args, **kwargs)))
        mine = milliseconds(lambda: compiled(*args, **kwargs))
        its = milliseconds(lambda: model(*args, **kwargs))
    print(
        f"{architecture.name:<26}{exported:10.1f}{seconds:10.1f}{mine:10.1f}{its:10.1f}"
        f"{mine / its:10.1f}{apart:10.1e}", flush=True,
    )  # fmt: skip
    return apart


def leaves(value: Any) -> list[torch.Tensor]:
    """The tensors of a nested result."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    found = [leaves(item) for item in items] if isinstance(value, dict | list | tuple) else []
    return [item for part in found for item in part]


def difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """The largest difference as a share of the largest magnitude of its tensor."""
    shares = [0.0]
    for mine, its in zip(found, expected, strict=True):
        if its.numel() and its.is_floating_point():
            scale = float(its.abs().max()) or 1.0
            shares.append(float((mine - its).abs().max()) / scale)
    return max(shares)


def milliseconds(call: Callable[[], Any], rounds: int = 5) -> float:
    """The median of a few calls."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    main(sys.argv[1:])
