"""What each graph pass costs, on graphs of 100, 1,000 and 10,000 bindings.

    python benchmarks/relax_passes.py [--sizes 100 1000 10000] [--only FuseOps,Normalize]

The graph mixes element-wise operators, products, convolutions, reshapes, concatenations, splits
and reductions. Every pass of ``relax.transform`` that can be made without arguments runs alone, on
the graph of operators and on the graph of kernels (LegalizeOps, AnnotateTIROpPattern), or on the
form that its place in the pipeline gives it (``stages``); the slower of the two counts. Printed:
milliseconds of processor time, and by how much it grows for each tenfold size (10 is linear).
LegalizeOps and FuseTIR are also given per distinct kernel.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import relax
from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.relax import op, transform
from weft.support.errors import TVMError
from weft.tir.function import PrimFunc

SKIPPED = {
    "PassContext": "no pass",
    "Sequential": "no pass",
    "register_legalize": "no pass",
    "dataflowblock_pass": "a decorator",
    "function_pass": "a decorator",
}
PER_KERNEL = ("LegalizeOps", "FuseTIR")
LOWERING = (
    "RewriteDataflowReshape", "ToNonDataflow", "RemovePurityChecking", "CallTIRRewrite",
    "StaticPlanBlockMemory", "LowerAllocTensor", "KillAfterLastUse", "LowerRuntimeBuiltin",
    "ComputePrimValue", "VMShapeLower", "AttachGlobalSymbol",
)  # fmt: skip
"""The passes behind LegalizeOps in ``default_build``: each runs on what those before it leave."""


def graph(size: int) -> IRModule:
    """A function of about ``size`` bindings."""
    bb = relax.BlockBuilder()
    image = relax.Var("image", relax.TensorStructInfo((1, 8, 8, 8), "float32"))
    rows = relax.Var("rows", relax.TensorStructInfo((64, 8), "float32"))
    weight = relax.Var("weight", relax.TensorStructInfo((8, 8), "float32"))
    filters = relax.Var("filters", relax.TensorStructInfo((8, 8, 3, 3), "float32"))
    scale = relax.const(np.linspace(0, 1, 8, dtype="float32"))
    count = 0

    def emit(value: Any) -> Any:
        nonlocal count
        count += 1
        return bb.emit(value)

    with bb.function("main", [image, rows, weight, filters]):
        with bb.dataflow():
            x, y = image, rows
            while count < size:
                x = emit(op.nn.relu(emit(op.nn.conv2d(x, filters, padding=(1, 1)))))
                x = emit(op.add(x, image))
                flat = emit(op.permute_dims(emit(op.reshape(x, (8, 64)))))
                y = emit(op.add(emit(op.matmul(emit(op.add(y, flat)), weight)), scale))
                halves = emit(op.split(y, 2, 1))
                low, high = (emit(relax.TupleGetItem(halves, i)) for i in range(2))
                y = emit(op.concat([emit(op.sigmoid(high)), emit(op.exp(low))], 1))
                total = emit(op.max(y, 1, keepdims=True))
                y = emit(op.subtract(y, total))
                x = emit(op.reshape(emit(op.permute_dims(y)), (1, 8, 8, 8)))
            out = bb.emit_output(op.add(x, image))
        bb.emit_func_output(out)
    return bb.get()


def bindings(mod: IRModule) -> int:
    """How many bindings the main function has."""
    return sum(len(block.bindings) for block in mod["main"].body.blocks)


def passes(only: set[str]) -> dict[str, Pass]:
    """The passes that need no arguments, by name."""
    found = {}
    for name in transform.__all__:
        maker: Callable[[], Any] = getattr(transform, name)
        if name in SKIPPED or (only and name not in only):
            continue
        try:
            made = maker()
        except (TypeError, TVMError):  # it needs arguments, as BindParams does
            continue
        if isinstance(made, Pass):
            found[name] = made
    return found


def stages(mod: IRModule) -> dict[str, list[IRModule]]:
    """The modules that a pass is timed on, by its name; under "" those for all others."""
    kernels = transform.AnnotateTIROpPattern()(transform.LegalizeOps()(mod))
    found = {"": [mod, kernels], "LegalizeOps": [mod], "FuseTIR": [transform.FuseOps()(kernels)]}
    lowered = kernels
    for name in LOWERING:
        found[name] = [lowered]
        lowered = getattr(transform, name)()(lowered)
    return found


def seconds(run: Pass, modules: list[IRModule], repeats: int) -> float:
    """The time on the slowest module, each at its best of ``repeats``."""
    worst = 0.0
    for mod in modules:
        best = float("inf")
        for _ in range(repeats):
            start = time.process_time()
            try:
                run(mod)
            except TVMError:  # a pass for a form that this module has not
                best = 0.0
                break
            best = min(best, time.process_time() - start)
        worst = max(worst, best)
    return worst


def distinct_kernels(name: str, modules: list[IRModule], run: Pass) -> int:
    """How many PrimFuncs a pass makes of the first module."""
    before = {gvar.name_hint for gvar in modules[0].functions}
    after = run(modules[0])
    made = [gvar for gvar, func in after.functions.items() if isinstance(func, PrimFunc)]
    if name == "FuseTIR":
        return sum(gvar.name_hint.startswith("fused_") for gvar in made)
    return sum(gvar.name_hint not in before for gvar in made)


def row(values: list[float]) -> str:
    """Seconds as a row of milliseconds."""
    return "".join(f"{1e3 * value:10.1f}" for value in values)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = passes(set(filter(None, options.only.split(","))))
    tables = {size: stages(graph(size)) for size in options.sizes}
    few = stages(graph(100))
    print(f"{'milliseconds':<34}" + "".join(f"{n:>10,}" for n in options.sizes) + "    growth")
    sums = dict.fromkeys(options.sizes, 0.0)
    for name, run in chosen.items():
        times = []
        for size in options.sizes:
            modules = tables[size].get(name, tables[size][""])
            times.append(seconds(run, modules, 1 if size > 2000 else 3))
            sums[size] += 0 if name in PER_KERNEL else times[-1]
        growth = " ".join(
            f"{(late / max(early, 1e-6)) ** (1 / np.log10(large / small)):5.1f}"
            for early, late, small, large in zip(
                times, times[1:], options.sizes, options.sizes[1:], strict=False
            )
        )
        print(f"{name:<34}" + row(times), "  ", growth, flush=True)
        if name in PER_KERNEL:
            modules = few[name]
            count = distinct_kernels(name, modules, run)
            each = 1e3 * seconds(run, modules, 3) / max(count, 1)
            print(f"    {each:.2f} ms for each of {count} kernels (100 bindings)")
    print(f"{'all but LegalizeOps and FuseTIR':<34}" + row(list(sums.values())))


if __name__ == "__main__":
    main()
