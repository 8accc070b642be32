"""The schedule walk-through, a program in cells; ``render_walkthrough.py`` makes its page of it."""

# %% [markdown]
# # A matrix product from 1 % to 95 % of the peak
#
# A product of two 768 × 768 float32 matrices, as a textbook writes it, uses about one hundredth of
# what one processor core can do. Eight steps of `tir.Schedule` take it to the peak, a ninth to
# several cores. No step touches the arithmetic: each one is a primitive or two that rearrange the
# same program, checked by weft and traced.
#
# This page, the notebook `examples/schedule_walkthrough.ipynb` and the program
# `examples/schedule_walkthrough.py` are one text; the program is the source.

# %% [markdown]
# Measured on an AMD EPYC (AVX-512), beside other work; run the program for yours.
#
# | step | cores | ms | GFLOP/s | share of the peak |
# |---|---:|---:|---:|---:|
# | 1 as written | 1 | 724.0 | 1.3 | 1.1 % |
# | 2 split, reorder | 1 | 195.6 | 4.6 | 4.0 % |
# | 3 vectorize | 1 | 36.5 | 24.8 | 21.2 % |
# | 4 register tile | 1 | 25.8 | 35.1 | 30.0 % |
# | 5 cache_write | 1 | 8.3 | 109.3 | 93.2 % |
# | 6 pack B | 1 | 8.3 | 109.6 | 93.5 % |
# | 7 pack in place | 1 | 8.1 | 111.7 | 95.3 % |
# | 8 decompose | 1 | 8.2 | 110.9 | 94.6 % |
# | 9 parallel | 2 | 4.1 | 222.7 | 95.0 % |
#
# `benchmarks/matmul.py` has the same kernel written by hand, over operands packed before: 98 %.
# The share of step 9 is of the peak of all cores that it uses, which other work on them lowers.

# %% [markdown]
# ## The measure
#
# The peak is what independent chains of fused multiply-adds reach in registers, without memory.

# %%
import os
import time

import numpy as np

import weft
from weft import tir
from weft.script import tir as T

N = int(os.environ.get("WALKTHROUGH_SIZE", "768"))
ROUNDS = int(os.environ.get("WALKTHROUGH_ROUNDS", "1000000"))
REPEATS = int(os.environ.get("WALKTHROUGH_REPEATS", "10"))


@T.prim_func
def chains(X: T.Buffer((24, 16), "float32")):
    chain = T.alloc_buffer((24, 16), "float32")
    for m in T.unroll(24):
        for n in T.vectorized(16):
            chain[m, n] = X[m, n]
    for _ in range(ROUNDS):
        for m in T.unroll(24):
            for n in T.vectorized(16):
                chain[m, n] = chain[m, n] * X[0, 0] + X[0, 1]
    for m in T.unroll(24):
        for n in T.vectorized(16):
            X[m, n] = chain[m, n]


def best(call, clock=time.process_time, repeats=REPEATS):
    """Seconds of the fastest of several calls; the clock counts the work of this process only."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        call()
        seconds.append(clock() - start)
    return max(min(seconds), 1e-9)


fma = weft.build(chains)
registers = weft.nd.array(np.full((24, 16), 0.5, "float32"))
rng = np.random.default_rng(0)
a, b = (rng.random((N, N), dtype="float32") for _ in range(2))
expected = a @ b
A, B, C = weft.nd.array(a), weft.nd.array(b), weft.nd.empty((N, N))
peaks, table = [], []


def measure(step, sch, cores=1):
    """Build the scheduled module, check its result against numpy, note its time.

    On one core that is the time that the process works, on several the time that passes.
    """
    built = weft.build(sch.mod)
    built["matmul"](A, B, C)
    np.testing.assert_allclose(C.numpy(), expected, rtol=1e-4)
    peaks.append(2 * registers.size * ROUNDS / best(lambda: fma["chains"](registers), repeats=3))
    clock = time.process_time if cores == 1 else time.perf_counter
    seconds = best(lambda: built["matmul"](A, B, C), clock, REPEATS if table else 1)
    table.append((step, seconds, cores))


def outline(sch):
    """Loops and blocks of the program as it stands, without axes, reads and writes."""
    for line in sch.mod["main"].script().splitlines():
        if any(word in line for word in ("for ", "T.block(", " = ")) and "T.axis" not in line:
            print(line)


# %% [markdown]
# ## 1. As written
#
# Consecutive steps of `k` read `B` a whole row apart, so each of them wants another cache line, and
# each addition waits for the one before it.


# %%
@T.prim_func
def matmul(
    A: T.Buffer((N, N), "float32"), B: T.Buffer((N, N), "float32"), C: T.Buffer((N, N), "float32")
):
    for i, j, k in T.grid(N, N, N):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


sch = tir.Schedule(matmul)
block = sch.get_block("C")
i, j, k = sch.get_loops(block)
measure("1 as written", sch)

# %% [markdown]
# ## 2. `split` and `reorder`: use the whole cache line
#
# Sixteen columns (64 bytes, one cache line) are computed together, inside of `k`: what is loaded
# of `B` is used at once. `split` makes two loops of one; `reorder` puts loops of a nest in the
# order given. Both refuse where the result could differ.

# %%
columns, column = sch.split(j, factors=[None, 16])
sch.reorder(columns, k, column)
outline(sch)
measure("2 split, reorder", sch)

# %% [markdown]
# ## 3. `vectorize`: sixteen lanes
#
# The sixteen columns become the lanes of vectors. Now the sums of a row stay in one register, and
# that is the limit: each multiply-add waits some four cycles for the one before it, while the
# processor could start one in every cycle.

# %%
sch.vectorize(column)
measure("3 vectorize", sch)

# %% [markdown]
# ## 4. A tile of registers: `split`, `reorder`, `unroll`
#
# Six rows are computed together: six independent sums that need not wait for each other, and each
# vector of `B` is used six times. 6 × 16 fits the registers of AVX2 and of AVX-512.

# %%
rows, row = sch.split(i, factors=[None, 6])
sch.reorder(columns, rows, k, row, column)
sch.unroll(row)
outline(sch)
measure("4 register tile", sch)

# %% [markdown]
# ## 5. `cache_write`: sums that nobody else sees
#
# `C` might be the same memory as `A` or `B`, for all that the compiler knows, so step 4 stores the
# tile and loads it again in every step of `k`. `cache_write` gives the block a buffer of its own
# and adds a block that copies it to `C`; `reverse_compute_at` moves that block to where a tile is
# finished. Lowering shrinks the buffer to one tile, and LLVM keeps it in registers.

# %%
copy = sch.cache_write(block, 0, "local")
sch.reverse_compute_at(copy, rows)
copied_row, copied_column = sch.get_loops(copy)[-2:]
sch.unroll(copied_row)
sch.vectorize(copied_column)
measure("5 cache_write", sch)

# %% [markdown]
# ## 6. `cache_read` and `transform_layout`: pack `B`
#
# The tile reads 16 columns of `B`, and then the same columns of the next row, 3 KB further on. At
# sizes beyond this one that misses the translation buffer. `cache_read` adds a copy of `B` and
# `transform_layout` says how the copy lies in memory: panels of 16 columns, in the order in which
# the tile reads them. All accesses are rewritten.

# %%
packed = sch.cache_read(block, 1, "global")
sch.transform_layout(packed, ("write", 0), lambda k, j: (j // 16, k, j % 16))
measure("6 pack B", sch)

# %% [markdown]
# ## 7. `compute_at`: pack a panel when it is needed
#
# The copy of step 6 packs all of `B` first. Moved into the loop over panels, each panel is packed
# right before its use and is still in the cache then. Only one panel lives at a time.

# %%
sch.compute_at(packed, columns)
sch.vectorize(sch.get_loops(packed)[-1])
measure("7 pack in place", sch)

# %% [markdown]
# ## 8. `decompose_reduction`: no test in the loop
#
# The block sets its sums to zero when `k` is 0: a test in the innermost loop, unless the compiler
# moves it. `decompose_reduction` makes the zeros a block of their own in front of the loop. It
# comes late, since most primitives want a reduction whole. (`copy` keeps step 7 for later.)

# %%
before = sch.copy()
sch.decompose_reduction(block, k)
outline(sch)
measure("8 decompose", sch)

# %% [markdown]
# ## 9. `parallel`: all cores
#
# The panels are independent. Random variables of `sch` are valid in its copies. As many threads
# run as this process has cores (`WEFT_NUM_THREADS` asks for fewer); their peak is that of one core
# as many times.

# %%
before.parallel(columns)
before.decompose_reduction(block, k)
measure("9 parallel", before, weft.runtime.num_threads())

# %% [markdown]
# ## The whole schedule
#
# The trace is the program that made the program: it can be printed, stored as JSON and applied to
# another schedule of the same function.

# %%
print(sch.trace)

# %%
again = tir.Schedule(matmul)
sch.trace.apply_to_schedule(again)
weft.ir.assert_structural_equal(again.mod, sch.mod)

# %% [markdown]
# ## The figures

# %% [no output]
print("| step | cores | ms | GFLOP/s | share of the peak |\n|---|---:|---:|---:|---:|")
for step, seconds, cores in table:
    rate = 2 * N**3 / seconds
    share = rate / cores / max(peaks)
    print(f"| {step} | {cores} | {seconds * 1e3:.1f} | {rate / 1e9:.1f} | {share:.1%} |")
