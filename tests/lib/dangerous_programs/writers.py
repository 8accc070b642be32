"""Programs in which the writers of a buffer are the trap: several of them, or none for a part."""

from weft.script import tir as T


@T.prim_func
def partial_write(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def partial_output(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(8, i + 1)
            C[vi] = A[vi] * 2


@T.prim_func
def overlapping_stores(A: T.Buffer((8, 3), "int32"), C: T.Buffer((10,), "int32")) -> None:
    for i, k in T.grid(8, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SS", [i, k])
            C[vi + vk] = A[vi, vk] + vi


@T.prim_func
def same_place(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, j in T.grid(6, 5):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi] = A[vi, vj]


@T.prim_func
def same_place_inside(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
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
def two_writers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def halves(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def multiple_stores(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def conditional_store(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def conditional_output(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            if A[vi] > 0:
                C[vi] = A[vi]
