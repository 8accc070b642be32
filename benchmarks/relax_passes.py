"""What each graph pass costs, on graphs of 100, 1,000 and 10,000 bindings.

    python benchmarks/relax_passes.py [--sizes 100 1000 10000] [--only FuseOps,Normalize]
                                      [--form mixed]

The graph mixes element-wise operators, products, convolutions, reshapes, concatenations, splits
and reductions; other forms have many blocks, outputs, functions, symbols or branches
(tests.lib.binding_graphs). Every pass of ``relax.transform`` that can be made without arguments
runs alone, on the graph of operators and on the graph of kernels (LegalizeOps,
AnnotateTIROpPattern), or on the form that its place in the pipeline gives it (``stages``); the
slower of the two counts. Printed: milliseconds of processor time (after the garbage of what ran
before is collected), and by how much it grows for each tenfold size (10 is linear).
LegalizeOps and FuseTIR are also given per distinct kernel.
"""

from __future__ import annotations

import argparse
import gc
import time

import numpy as np

from tests.lib.binding_graphs import FORMS, passes, stages
from weft.ir.module import IRModule
from weft.ir.transform import Pass
from weft.support.errors import TVMError
from weft.tir.function import PrimFunc

PER_KERNEL = ("LegalizeOps", "FuseTIR")


def seconds(run: Pass, modules: list[IRModule], repeats: int) -> float:
    """The time on the slowest module, each at its best of ``repeats``."""
    worst = 0.0
    for mod in modules:
        best = float("inf")
        for _ in range(repeats):
            gc.collect()
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
    parser.add_argument("--form", choices=FORMS, default="mixed")
    options = parser.parse_args()
    chosen = passes(set(filter(None, options.only.split(","))))
    graph = FORMS[options.form]
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
