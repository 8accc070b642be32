"""Programs whose accesses are the trap: windows, indices from data, calls, aliases."""

from weft.script import tir as T


@T.prim_func
def window(A: T.Buffer((10,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def window_on_output(
    A: T.Buffer((10,), "int32"), B: T.Buffer((10,), "int32"), C: T.Buffer((8,), "int32")
) -> None:
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 3
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + B[vi + 2]


@T.prim_func
def nested_blocks(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32")) -> None:
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
def gathered(
    A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "uint8"), C: T.Buffer((8,), "int32")
) -> None:
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
def scattered(
    A: T.Buffer((8,), "int32"), I: T.Buffer((8,), "uint8"), C: T.Buffer((12,), "int32")
) -> None:
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi], I[vi])
            T.writes(C[0:12])
            C[T.Cast("int32", I[vi])] = A[vi] + vi


@T.prim_func
def opaque_call(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def opaque_axis_order(A: T.Buffer((8,), "int32"), C: T.Buffer((1,), "int32")) -> None:
    for i in range(8):
        with T.block("C"):
            vi = T.axis.opaque(8, i)
            C[0] = C[0] * 2 + A[vi]


@T.prim_func
def matched_alias(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")) -> None:
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
def declared_alias(A: T.Buffer((12,), "int32"), C: T.Buffer((12,), "int32")) -> None:
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
def thread_bound(A: T.Buffer((8, 4), "int32"), C: T.Buffer((8, 4), "int32")) -> None:
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
