"""Programs whose meaning hangs on the order of reads and writes of one memory.

Each reads memory that is written over before or after, within one block or across two.
"""

from weft.script import tir as T


@T.prim_func
def write_after_read(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")) -> None:
    for i, j in T.grid(8, 6):
        with T.block("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + 1
    for i, j in T.grid(8, 6):
        with T.block("clear"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = 7


@T.prim_func
def write_after_read_inside(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")) -> None:
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
def producer_then_shifted_writes(A: T.Buffer((12,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi + 4] * 2
    for i in range(8):
        with T.block("A"):
            vi = T.axis.spatial(8, i)
            A[vi] = C[vi] + 1


@T.prim_func
def padded_then_changed(A: T.Buffer((6,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def shifted_in_place(A: T.Buffer((9, 4), "int32")) -> None:
    for i, j in T.grid(8, 4):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi + 1, vj] * 2


@T.prim_func
def scan(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")) -> None:
    for i, j in T.grid(7, 4):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi + 1, vj] = C[vi, vj] + A[vi, vj]


@T.prim_func
def scan_inside(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def diagonal_neighbours(A: T.Buffer((7, 7), "int32")) -> None:
    for i, j in T.grid(6, 6):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi + 1, vj] = A[vi, vj + 1] + 1


@T.prim_func
def own_output_neighbours(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    for i in range(7):
        with T.block("C"):
            vi = T.axis.spatial(7, i)
            C[vi] = C[vi + 1] + A[vi]


@T.prim_func
def loop_carried_pair(A: T.Buffer((8,), "int32"), C: T.Buffer((9,), "int32")) -> None:
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = C[vi] + A[vi]
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi + 1] = B[vi] * 2


@T.prim_func
def read_before_write(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def later_reader_of_shift(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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


@T.prim_func
def running_sum_read(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
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


@T.prim_func
def accumulator_read_later(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
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
