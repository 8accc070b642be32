"""Working memory of whole models: what the plan takes beside the least that any plan can take.

    python benchmarks/peak_memory.py [--small]

The bound is the largest sum of tensors that are alive at one step. Storages are what
StaticPlanBlockMemory shares them in (TVM's planner), the arena what AssignOffsets packs; for the
Llama graph, whose length is symbolic, both are shown at several lengths, of one artefact. Outputs
are memory of the caller, as are weights. Kernels come from LegalizeOps, not fused.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from tests.lib.model_graphs import bert_base, llama, resnet50
from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm
from weft.ir.functor import substitute
from weft.ir.op import Op
from weft.ir.transform import Sequential
from weft.relax import transform
from weft.relax.analysis.allocation import find_allocations
from weft.relax.ir.lattice import symbolic_vars
from weft.runtime.memory.plan import largest_live, plan_offsets

LOWERED = Sequential(
    [
        transform.LegalizeOps(),
        transform.RewriteDataflowReshape(),
        transform.ToNonDataflow(),
        transform.RemovePurityChecking(),
        transform.CallTIRRewrite(),
    ]
)
ALLOC_TENSOR = Op.get("relax.builtin.alloc_tensor")
LENGTHS = (1, 17, 128, 512, 2048)


def number(expr: Any, symbols: dict[str, int]) -> int:
    """The value of a size."""
    values = {var: IntImm(var.dtype, symbols[var.name]) for var in symbolic_vars(expr)}
    return int(Analyzer().simplify(substitute(expr, values)))


def sizes_and_lives(mod: Any, symbols: dict[str, int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Bytes and first and last position of every tensor that stays inside of main."""
    found = find_allocations(mod["main"], mod, lambda call: call.op is ALLOC_TENSOR)
    sizes, lives = [], []
    for life in found.lives.values():
        count = 1
        for extent in life.call.args[0].values:
            count *= number(extent, symbols)
        sizes.append(count * life.call.args[1].value.itemsize)
        lives.append((life.first, life.last))
    return sizes, lives


def storages(mod: Any, symbols: dict[str, int]) -> int:
    """The bytes of all storages of StaticPlanBlockMemory."""
    planned = transform.StaticPlanBlockMemory()(mod)
    return sum(
        number(binding.value.args[0].values[0], symbols)
        for block in planned["main"].body.blocks
        for binding in block.bindings
        if getattr(getattr(binding.value, "op", None), "name", "") == "relax.memory.alloc_storage"
    )


def report(name: str, mod: Any, symbols: dict[str, int]) -> float:
    """Print one line; the arena's share of the bound."""
    start = time.perf_counter()
    sizes, lives = sizes_and_lives(mod, symbols)
    _, arena = plan_offsets(sizes, lives)
    seconds = time.perf_counter() - start
    bound, shared = largest_live(sizes, lives), storages(mod, symbols)
    mib = 1 / (1 << 20)
    print(
        f"{name:24} {len(sizes):5} {sum(sizes) * mib:9.2f} {shared * mib:9.2f} "
        f"{arena * mib:9.2f} {bound * mib:9.2f} {arena / bound:8.3f} {1e3 * seconds:8.1f}"
    )
    return arena / bound


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few layers, for a quick look")
    small = parser.parse_args().small
    print(
        f"{'model':24} {'count':>5} {'all MiB':>9} {'storages':>9} {'arena':>9} {'bound':>9} "
        f"{'ratio':>8} {'plan ms':>8}"
    )
    ratios = [
        report("ResNet-50, 224", LOWERED(resnet50(64, (1, 1, 1, 1)) if small else resnet50()), {}),
        report("BERT-base, 128", LOWERED(bert_base(layers=2) if small else bert_base()), {}),
    ]
    decoder = LOWERED(llama(2) if small else llama())
    for length in LENGTHS:
        ratios.append(report(f"Llama, n = {length}", decoder, {"n": length}))
    print(f"largest ratio of arena to bound: {max(ratios):.3f}")


if __name__ == "__main__":
    main()
