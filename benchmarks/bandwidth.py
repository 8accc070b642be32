"""Memory-bound operators as a share of what a copy of as many bytes reaches, in one thread.

    python -m benchmarks.bandwidth [--only TEXT] [--target "llvm -mcpu=haswell"]

Bytes are those of the arguments and the result. A row's kernel is timed in turn with copies of half
as many bytes, numpy's and one in vectors that weft compiles, of which the faster one counts, each
on memory that it has touched before; the lowest times count, of a program with others beside it,
less what each call takes for one element: a weft kernel's 0.7 microseconds are a third of such a
row as a padded image of 14 x 14, and nothing of its bandwidth.
Rows whose arguments are not read as a whole (slices, gathers), or that read more than they write,
differ from a copy, so that 100 % is no bound for them. Where instructions are what takes the time,
and not memory, a row says which.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import weft
from benchmarks.options import chosen, status_of
from weft import dlight, te, topi
from weft.runtime.threads.parallel import set_num_threads
from weft.tir import IndexMap
from weft.topi.rearrangement import layout_transform

TURNS: Final = 5
SECONDS: Final = 0.03
"""Of each of what is timed in each turn."""

Shape = tuple[int, ...]
Compute = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One row: what is computed of arguments of these shapes and types."""

    name: str
    shapes: tuple[Shape, ...]
    compute: Compute
    dtypes: tuple[str, ...] = ("float32",)
    limit: str = ""
    """What takes the time where memory does not."""

    def arguments(self) -> list[Any]:
        """Placeholders; the last type is that of all arguments that follow."""
        types = [self.dtypes[min(at, len(self.dtypes) - 1)] for at in range(len(self.shapes))]
        pairs = zip(self.shapes, types, strict=True)
        return [te.placeholder(shape, dtype, f"x{at}") for at, (shape, dtype) in enumerate(pairs)]


def _mapped(index_map: Callable[..., Any]) -> Compute:
    return lambda x: layout_transform(x, IndexMap.from_func(index_map), None)


def _to_blocks(size: int) -> Compute:
    return _mapped(lambda n, c, h, w: (n, c // size, h, w, c % size))


def _from_blocks(size: int) -> Compute:
    return _mapped(lambda n, c, h, w, k: (n, c * size + k, h, w))


def _permuted(*axes: int) -> Compute:
    return lambda x: topi.transpose(x, axes)


def _resized(method: str, mode: str) -> Compute:
    return lambda x: topi.image.resize2d(
        x, (0, 0, 0, 0), (112, 112), method=method, coordinate_transformation_mode=mode,
        rounding_method="floor" if method == "nearest_neighbor" else "",
    )  # fmt: skip


def _cast(source: str, target: str) -> Case:
    return Case(
        f"cast {source} to {target}", ((1000, 1000),), lambda x: topi.cast(x, target), (source,)
    )


IMAGE: Final = (1, 64, 56, 56)
CASES: Final = (
    Case("NCHW to NCHW16c, 64 x 56 x 56", (IMAGE,), _to_blocks(16)),
    Case("NCHW16c to NCHW, 64 x 56 x 56", ((1, 4, 56, 56, 16),), _from_blocks(16)),
    Case("NCHW to NCHW8c, 24 x 56 x 56", ((1, 24, 56, 56),), _to_blocks(8)),
    Case("NCHW to NCHW16c, 256 x 56 x 56", ((1, 256, 56, 56),), _to_blocks(16)),
    Case("NCHW16c to NCHW, 256 x 56 x 56", ((1, 16, 56, 56, 16),), _from_blocks(16)),
    Case("NCHW to NCHW16c, 512 x 7 x 7", ((1, 512, 7, 7),), _to_blocks(16)),
    Case("transpose 768 x 768", ((768, 768),), _permuted(1, 0)),
    Case("transpose 1000 x 2048", ((1000, 2048),), _permuted(1, 0)),
    Case("NCHW to NHWC, 64 x 56 x 56", (IMAGE,), _permuted(0, 2, 3, 1)),
    Case("NHWC to NCHW, 64 x 56 x 56", ((1, 56, 56, 64),), _permuted(0, 3, 1, 2)),
    Case("NHWC to NCHW, 3 x 224 x 224", ((1, 224, 224, 3),), _permuted(0, 3, 1, 2)),
    Case("NCHW to NHWC, 3 x 224 x 224", ((1, 3, 224, 224),), _permuted(0, 2, 3, 1)),
    Case("heads together, 12 x 128 x 64", ((1, 12, 128, 64),),
         lambda x: topi.reshape(topi.transpose(x, (0, 2, 1, 3)), (1, 128, 768))),
    Case("heads apart, 128 x 768", ((1, 128, 768),),
         lambda x: topi.transpose(topi.reshape(x, (1, 128, 12, 64)), (0, 2, 1, 3))),
    Case("patches to rows, 768 x 14 x 14", ((1, 768, 14, 14),),
         lambda x: topi.transpose(topi.reshape(x, (1, 768, 196)), (0, 2, 1))),
    Case("sum, 24 x 56 x 56", ((1, 24, 56, 56),) * 2, topi.add),
    Case("relu, 256 x 56 x 56", ((1, 256, 56, 56),), topi.nn.relu),
    Case("bias of columns, 128 x 3072", ((128, 3072), (3072,)), topi.add),
    Case("number for each channel, 64 x 56 x 56", (IMAGE, (64, 1, 1)), topi.add),
    Case("number for each channel, 2048 x 7 x 7", ((1, 2048, 7, 7), (2048, 1, 1)), topi.add),
    Case("number for each row, 512 x 1000", ((512, 1000), (512, 1)), topi.add),
    Case("outer sum, 1000 x 1000", ((1000, 1), (1, 1000)), topi.add),
    Case("padded image, 64 x 56 x 56", (IMAGE,), lambda x: topi.nn.pad(x, [0, 0, 1, 1])),
    Case("padded image, 64 x 14 x 14", ((1, 64, 14, 14),),
         lambda x: topi.nn.pad(x, [0, 0, 1, 1])),
    Case("channels one after the other", (IMAGE,) * 2, lambda x, y: topi.concatenate([x, y], 1)),
    Case("columns one after the other", ((1000, 100), (1000, 50)),
         lambda x, y: topi.concatenate([x, y], 1)),
    Case("slice of columns", ((1000, 300),),
         lambda x: topi.strided_slice(x, [0, 100], [1000, 200], [1, 1])),
    Case("second third", ((64, 3, 1000),), lambda x: topi.split(x, 3, 1)[1]),
    Case("rows one after the other", ((100, 1000), (50, 1000)),
         lambda x, y: topi.concatenate([x, y], 0)),
    Case("rows repeated, 256 x 512 by 2", ((256, 512),), lambda x: topi.repeat(x, 2, 0)),
    Case("columns repeated, 512 x 256 by 2", ((512, 256),), lambda x: topi.repeat(x, 2, 1)),
    Case("heads repeated, 8 x 128 x 64 by 4", ((1, 8, 128, 64),), lambda x: topi.repeat(x, 4, 1)),
    Case("tiles, 256 x 256 by 2 and 2", ((256, 256),), lambda x: topi.tile(x, (2, 2))),
    Case("halves turned", ((1, 16, 512, 64),), lambda x: topi.concatenate(
        [topi.negative(half) for half in topi.split(x, 2, 3)], 3)),
    Case("rows backwards", ((1000, 1000),), lambda x: topi.flip(x, 1)),
    Case("image upside down, 64 x 56 x 56", (IMAGE,), lambda x: topi.flip(x, 2)),
    Case("lower triangle", ((1000, 1000),), lambda x: topi.trilu(x, 0, False)),
    Case("rows taken, 2000 of 64", ((30522, 64), (2000,)), lambda x, i: topi.take(x, i, 0),
         ("float32", "int64")),
    Case("columns taken, 512 x 512", ((512, 512), (512,)), lambda x, i: topi.take(x, i, 1),
         ("float32", "int64"), "a load into a lane for each element, of which two fit a cycle"),
    Case("elements taken, 512 x 512", ((512, 512),) * 2, lambda x, i: topi.gather(x, 1, i),
         ("float32", "int64"), "two loads for each element, one of them into a lane"),
    Case("running sums, 512 x 1000", ((512, 1000),), lambda x: topi.cumsum(x, 1),
         limit="16 conversions to float64 and back and 48 shuffles for 64 elements"),
    Case("running sums over the middle, 32 x 256 x 64", ((32, 256, 64),),
         lambda x: topi.cumsum(x, 1), limit="conversions to float64 and back"),
    Case("sums of columns, 1024 x 1024", ((1024, 1024),), lambda x: topi.sum(x, 0)),
    Case("sums of rows, 1024 x 1024", ((1024, 1024),), lambda x: topi.sum(x, 1)),
    Case("sums of rows of 16", ((40000, 16),), lambda x: topi.sum(x, 1)),
    Case("sums of rows of 7", ((100000, 7),), lambda x: topi.sum(x, 1),
         limit="joining lanes: five instructions a row"),
    Case("sum of all, 1024 x 1024", ((1024, 1024),), topi.sum),
    Case("sums over the middle, 32 x 256 x 64", ((32, 256, 64),), lambda x: topi.sum(x, 1)),
    Case("places of the largest, 512 x 1000", ((512, 1000),), lambda x: topi.argmax(x, 1),
         limit="two comparisons and two choices a vector, one after the other, and joining lanes"),
    Case("places of the largest, 10 x 50257", ((10, 50257),), lambda x: topi.argmax(x, 1),
         limit="two comparisons and two choices a vector"),
    Case("means of images, 2048 x 7 x 7", ((1, 2048, 7, 7),),
         lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg")),
    Case("means of images, 256 x 56 x 56", ((1, 256, 56, 56),),
         lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg")),
    Case("max pool 3 x 3 by 2, 64 x 112 x 112", ((1, 64, 112, 112),),
         lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max"),
         limit="six maxima a vector, of three instructions, and storing every second column apart"),
    Case("nearest, 64 x 56 x 56 to 112", (IMAGE,), _resized("nearest_neighbor", "asymmetric")),
    Case("bilinear, 64 x 56 x 56 to 112", (IMAGE,), _resized("linear", "half_pixel"),
         limit="four instructions on floats and two shuffles a vector, and where a row is"),
    *[_cast("float32", name) for name in ("float16", "bfloat16", "int8", "uint8", "int32", "bool")],
    *[_cast(name, "float32") for name in ("float16", "bfloat16", "int8", "uint8", "int64", "bool")],
    Case("sum of float16", ((1000, 1000),) * 2, topi.add, ("float16",),
         "three conversions for each eight elements"),
    Case("sum of bfloat16", ((1000, 1000),) * 2, topi.add, ("bfloat16",)),
    *[Case(f"relu of {name}", ((1000, 1000),), topi.nn.relu, (name,))
      for name in ("float16", "bfloat16")],
    Case("comparison", ((1000, 1000),) * 2, topi.greater),
    Case("choice", ((1000, 1000),) * 3, topi.where, ("bool", "float32")),
    Case("choice by columns", ((1, 1000), (1000, 1000), (1, 1)), topi.where, ("bool", "float32")),
)  # fmt: skip
"""What is measured."""


def kernel_of(case: Case, target: str) -> tuple[Callable[[], object], int]:
    """A call of the scheduled kernel on arrays of its own, and the bytes of those."""
    given = case.arguments()
    result = case.compute(*given)
    func = te.create_prim_func([*given, result])
    made = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    kernel = weft.build(func if made is None else made.mod, target)["main"]
    arrays = [_array(tensor) for tensor in (*given, result)]
    return lambda: kernel(*arrays), sum(array.numpy().nbytes for array in arrays)


def _array(tensor: Any) -> Any:
    shape = [int(extent) for extent in tensor.shape]
    generator = np.random.default_rng(0)
    array = weft.nd.empty(shape, str(tensor.dtype))
    values = generator.integers(0, 100, shape) if "int" in str(tensor.dtype) else (
        generator.standard_normal(shape, np.float32)
    )  # fmt: skip
    array.copyfrom(values.astype(array.numpy().dtype))
    return array


def copies_of(nbytes: int, target: str, others: int = 0) -> list[Callable[[], object]]:
    """Copies that read and write so many bytes in all; weft's has ``others`` for arguments too."""
    shapes = ((max(nbytes // 8, 1),), *[(1,)] * others)
    case = Case("copy", shapes, lambda x, *_: topi.identity(x))
    source, result = [np.ones(max(nbytes // 2, 1), np.uint8) for _ in range(2)]
    return [lambda: np.copyto(result, source), kernel_of(case, target)[0]]


def lowest(call: Callable[[], object]) -> float:
    """The lowest seconds of a call, of those that ``SECONDS`` have room for."""
    found: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(found) < 3:
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def share_of(case: Case, target: str) -> float:
    """The lowest time of a copy over that of the kernel."""
    call, nbytes = kernel_of(case, target)
    numpys, wefts = copies_of(nbytes, target)
    few, fewest = copies_of(0, target)
    _, few_arguments = copies_of(0, target, len(case.shapes) - 1)
    calls = (call, few_arguments, numpys, few, wefts, fewest)
    turns = [[lowest(one) for one in calls] for _ in range(TURNS)]
    times = [min(found) for found in zip(*turns, strict=True)]
    kernel, *copies = [whole - alone for whole, alone in zip(times[::2], times[1::2], strict=True)]
    return min(copies) / kernel


def main() -> None:
    """Measure and print one line for each row, and the geometric mean."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--target", default="llvm", help="what to compile for (default: llvm)")
    options = parser.parse_args()
    set_num_threads(1)
    shares: dict[Case, float] = {}
    for case in chosen(CASES, options.only):
        shares[case] = share_of(case, f"{options.target} -num-cores=1")
        limit = f" ({case.limit})" if case.limit else ""
        print(f"{shares[case]:7.1%}  {case.name}{limit}", flush=True)
    of_memory = [share for case, share in shares.items() if not case.limit]
    for text, found in (("all rows", [*shares.values()]), ("memory limits", of_memory)):
        if found:
            mean = statistics.geometric_mean(found)
            print(f"{mean:7.1%}  geometric mean of {text}; least {min(found):.1%}")


if __name__ == "__main__":
    raise SystemExit(status_of(main))
