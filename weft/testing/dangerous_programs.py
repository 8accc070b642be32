"""Small programs that a careless scheduler miscompiles, for tests of schedules.

Each has one trap: memory read before it is written over, windows that overlap, two writers, two
names of one memory, indices from data, conditions around blocks, bindings that are no affine map.
``PROGRAMS`` has them all by name; ``SIZES`` gives symbols of their shapes values.
"""

from __future__ import annotations

from weft.script import tir
from weft.script.parser.entry import from_source
from weft.tir.function import PrimFunc

SOURCES = """\
@T.prim_func
def write_after_read(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")):
    for i, j in T.grid(8, 6):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(8, 6):
        with T.block("clear"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 7

@T.prim_func
def write_after_read_inside(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")):
    B = T.alloc_buffer((8, 6), "int32")
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(8, 6):
        with T.block("clear"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 5 + vi
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + A[vi, vj]

@T.prim_func
def partial_write(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("zero"):
            vi = T.axis.spatial(8, i)
            B[vi] = 3
    for i in range(4):
        with T.block("some"):
            vi = T.axis.spatial(4, i)
            B[vi * 2] = A[vi * 2]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1

@T.prim_func
def partial_output(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(8, i + 1)
            C[vi] = A[vi] * 2

@T.prim_func
def window(A: T.Buffer((10,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 3
    for i, k in T.grid(8, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + B[vi + vk]

@T.prim_func
def window_on_output(A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32"),
                     C: T.Buffer((8,), "int32")):
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 3
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi + 2]

@T.prim_func
def overlapping_stores(A: T.Buffer((8, 3), "int32"), C: T.Buffer((10,), "int32")):
    for i, k in T.grid(8, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi + vk] = A[vi, vk] + vi

@T.prim_func
def same_place(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, j in T.grid(6, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi] = A[vi, vj]

@T.prim_func
def same_place_inside(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    B = T.alloc_buffer((6,), "int32")
    for i, j in T.grid(6, 5):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi] = A[vi, vj]
    for i in range(6):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            C[vi] = B[vi] + 1

@T.prim_func
def opaque_call(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 2
    for i in range(8):
        with T.block("C"):
            vi = T.axis.opaque(8, i)
            C[vi] = B[vi] + 1

@T.prim_func
def opaque_axis_order(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.opaque(8, i)
            C[0] = C[0] * 2 + A[vi]

@T.prim_func
def gathered(A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "uint8"),
             C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi // 2] * 2 + vi
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[0:16], I[vi])
            T.writes(C[vi])
            C[vi] = B[T.Cast("int32", I[vi])]

@T.prim_func
def scattered(A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "uint8"),
              C: T.Buffer((12,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], I[vi])
            T.writes(C[0:12])
            C[T.Cast("int32", I[vi])] = A[vi] + vi

@T.prim_func
def under_if(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")):
    B = T.alloc_buffer((8, 6), "int32")
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
    for i, j in T.grid(8, 6):
        if i < 5:
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] + 1

@T.prim_func
def producer_under_if(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("zero"):
            vi = T.axis.spatial(8, i)
            B[vi] = 4
    for i in range(8):
        if A[0] < 3:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 3
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1

@T.prim_func
def under_let(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.LetStmt(A[i] * 2) as x:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi] + x

@T.prim_func
def reduction_under_if(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        if i * 5 + k < 22:
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 1
                C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def matched_alias(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")):
    B = T.alloc_buffer((8, 6), "int32")
    for i, j in T.grid(8, 6):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 3
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(B[vi, 0:6])
            T.writes(C[vi, 0:6])
            row = T.match_buffer(B[vi, 0:6], (1, 6), "int32", offset_factor=1)
            for j in range(6):
                with T.block("inner"):
                    vj = T.axis.spatial(6, j)
                    C[vi, vj] = row[0, vj] + row[0, 5 - vj]

@T.prim_func
def declared_alias(A: T.Buffer((12,), "int32"), C: T.Buffer((12,), "int32")):
    B = T.alloc_buffer((12,), "int32")
    grid = T.decl_buffer((3, 4), "int32", data=B.data)
    for i in range(12):
        with T.block("B"):
            vi = T.axis.spatial(12, i)
            B[vi] = A[vi] * 3
    for i, j in T.grid(3, 4):
        with T.block("alias"):
            vi, vj = T.axis.remap("SS", [i, j])
            grid[vi, vj] = 100 + vi * 4 + vj
    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi] = B[vi] + 1

@T.prim_func
def shifted_in_place(A: T.Buffer((9, 4), "int32")):
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi + 1, vj] * 2

@T.prim_func
def scan(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    for i, j in T.grid(7, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + 1, vj] = C[vi, vj] + A[vi, vj]

@T.prim_func
def scan_inside(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((9,), "int32")
    with T.block("first"):
        B[0] = 1
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi + 1] = B[vi] * 2 + A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi + 1] - 1

@T.prim_func
def diagonal_neighbours(A: T.Buffer((7, 7), "int32")):
    for i, j in T.grid(6, 6):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + 1

@T.prim_func
def loop_carried_pair(A: T.Buffer((8,), "int32"), C: T.Buffer((9,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi] + A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi + 1] = B[vi] * 2

@T.prim_func
def read_before_write(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("init"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for t in range(3):
        for i in range(8):
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                C[vi] = B[vi] + vt
        for i in range(8):
            with T.block("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vi] = C[vi] * 2

@T.prim_func
def no_init(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def init_of_state(A: T.Buffer((6, 5), "int32"), D: T.Buffer((6,), "int32"),
                  C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = D[vi] * 2
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def init_reads_output(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = C[vi] * 2 + 1
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def not_commutative(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 1
            C[vi] = C[vi] * 2 + A[vi, vk]

@T.prim_func
def subtraction(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = A[vi, vk] - C[vi]

@T.prim_func
def init_not_identity(A: T.Buffer((6, 8), "int32"), C: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 10
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def reduced_outside(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    for k, i in T.grid(5, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def two_writers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B0"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2
    for i in range(8):
        with T.block("D"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1
    for i in range(8):
        with T.block("B1"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 5
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 2

@T.prim_func
def halves(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(4):
        with T.block("low"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] * 2
    for i in range(4):
        with T.block("high"):
            vi = T.axis.spatial(4, i)
            B[vi + 4] = A[vi] * 5
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[7 - vi] + 1

@T.prim_func
def not_affine(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    B = T.alloc_buffer((16,), "int32")
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] + 1
    for i, j in T.grid(4, 4):
        with T.block("C"):
            vi = T.axis.spatial(16, i * j)
            C[vi] = B[vi] + 2

@T.prim_func
def repeated_instances(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for t, i in T.grid(3, 8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + 1
    for t, i in T.grid(2, 8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 2

@T.prim_func
def repeated_sum(A: T.Buffer((6, 4), "int32"), C: T.Buffer((6,), "int32")):
    for t, i, k in T.grid(2, 6, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def predicated(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32")):
    B = T.alloc_buffer((10,), "int32")
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi = T.axis.spatial(10, i * 3 + j)
            T.where(i * 3 + j < 10)
            B[vi] = A[vi] + 1
    for i, j in T.grid(3, 4):
        with T.block("C"):
            vi = T.axis.spatial(10, i * 4 + j)
            T.where(i * 4 + j < 7)
            C[vi] = B[vi] * 2

@T.prim_func
def predicated_sum(A: T.Buffer((6, 10), "int32"), C: T.Buffer((6,), "int32")):
    for i, k0, k1 in T.grid(6, 4, 3):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(10, k0 * 3 + k1)
            T.where(k0 * 3 + k1 < 10)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def unit_loops(A: T.Buffer((1, 6, 1), "int32"), C: T.Buffer((1,), "int32")):
    B = T.alloc_buffer((1, 6, 1), "int32")
    for i, j, k in T.grid(1, 6, 1):
        with T.block("B"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            B[vi, vj, vk] = A[vi, vj, vk] + 1
    for i, j, k in T.grid(1, 6, 1):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SRR", [i, j, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + B[vi, vj, vk]

@T.prim_func
def symbolic_two(a: T.handle, c: T.handle, n: T.int32, m: T.int32) -> None:
    A = T.match_buffer(a, (n,), "int32")
    C = T.match_buffer(c, (m,), "int32")
    B = T.alloc_buffer((n,), "int32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] + 1
    for i in range(m):
        with T.block("C"):
            vi = T.axis.spatial(m, i)
            C[vi] = T.if_then_else(vi < n, B[T.min(vi, n - 1)], 0) * 2

@T.prim_func
def symbolic_sum(a: T.handle, c: T.handle, n: T.int32, k: T.int32) -> None:
    A = T.match_buffer(a, (n, k), "int32")
    C = T.match_buffer(c, (n,), "int32")
    for i, j in T.grid(n, k):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]

@T.prim_func
def thread_bound(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")):
    B = T.alloc_buffer((8, 4), "int32")
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * 2
    for i in T.thread_binding(8, thread="blockIdx.x"):
        for j in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, 3 - vj] + 1

@T.prim_func
def own_output_neighbours(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = C[vi + 1] + A[vi]

@T.prim_func
def later_reader_of_shift(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
    for i in range(7):
        with T.block("shift"):
            vi = T.axis.spatial(7, i)
            B[vi] = B[vi + 1] * 2
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1

@T.prim_func(check_well_formed=False)
def outer_variable(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")):
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + i * 10 + j

@T.prim_func
def triangular(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6, 6), "int32")):
    for i in range(6):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(6, j)
                C[vi, vj] = A[vi, vj] + 1

@T.prim_func
def triangular_sum(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.reduce(6, j)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vj]

@T.prim_func
def shifted_loops(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32")):
    B = T.alloc_buffer((10,), "int32")
    for i in range(0, 10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 2
    for i in range(2, 9):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi] + B[vi - 2]

@T.prim_func
def data_extent(A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "uint8"),
                C: T.Buffer((8,), "int32")):
    for i in range(T.min(T.Cast("int32", N[0]), 8)):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + 1

@T.prim_func
def multiple_stores(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi]
            B[vi] = B[vi] * 2 + 1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[7 - vi]

@T.prim_func
def conditional_store(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("zero"):
            vi = T.axis.spatial(8, i)
            B[vi] = 9
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0:
                B[vi] = A[vi]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + 1

@T.prim_func
def conditional_output(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0:
                C[vi] = A[vi]

@T.prim_func
def producer_then_shifted_writes(A: T.Buffer((12,), "int32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi + 4] * 2
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = C[vi] + 1

@T.prim_func
def nested_blocks(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")):
    B = T.alloc_buffer((8, 8), "int32")
    for i in range(8):
        with T.block("rows"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:8])
            T.writes(B[vi, 0:8])
            for j in range(8):
                with T.block("B"):
                    vj = T.axis.spatial(8, j)
                    B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(8, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] + 1

@T.prim_func
def padded_then_changed(A: T.Buffer((6,), "int32"), C: T.Buffer((8,), "int32")):
    P = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("P"):
            vi = T.axis.spatial(10, i)
            P[vi] = T.if_then_else(2 <= vi and vi < 8, A[vi - 2], 0)
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = P[vi] + P[vi + 1] * 2 + P[vi + 2]

@T.prim_func
def pair_sum(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 5):
        with T.block("CD"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
                D[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
            D[vi] = D[vi] + C[vi]

@T.prim_func
def two_reductions(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")):
    m = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("m"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                m[vi] = T.min_value("int32")
            m[vi] = T.max(m[vi], A[vi, vk])
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + (A[vi, vk] - m[vi])

@T.prim_func
def accumulator_read_later(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")):
    s = T.alloc_buffer((6,), "int32")
    for i in range(6):
        for k in range(5):
            with T.block("s"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    s[vi] = 0
                s[vi] = s[vi] + A[vi, vk]
        for k in range(5):
            with T.block("C"):
                vi, vk = T.axis.remap("SS", [i, k])
                C[vi, vk] = s[vi] + A[vi, vk]

@T.prim_func
def running_sum_read(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")):
    s = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("s"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                s[vi] = 0
            s[vi] = s[vi] + A[vi, vk]
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi, vk] = s[vi]
"""


def _parsed(text: str) -> PrimFunc:
    checked = "check_well_formed=False" not in text
    made = from_source(text, {"T": tir}, check_well_formed=checked)
    assert isinstance(made, PrimFunc)
    return made


PROGRAMS: dict[str, PrimFunc] = {
    text.split("def ")[1].split("(")[0]: _parsed("@T.prim_func" + text)
    for text in SOURCES.split("@T.prim_func")[1:]
}
SIZES = {"n": 7, "m": 9, "k": 4}
