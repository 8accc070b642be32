"""Programs whose iterations are the trap.

Conditions around blocks, predicates, repeated instances, bindings that are no affine map, extents
that depend on loops, data or symbols.
"""

from weft.script import tir as T


@T.prim_func
def under_if(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")) -> None:
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
def producer_under_if(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def under_let(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
    for i in range(8):
        with T.LetStmt(A[i] * 2) as x:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(C[vi])
                C[vi] = A[vi] + x


@T.prim_func
def not_affine(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")) -> None:
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
def repeated_instances(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")) -> None:
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
def predicated(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32")) -> None:
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
def unit_loops(A: T.Buffer((1, 6, 1), "int32"), C: T.Buffer((1,), "int32")) -> None:
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


@T.prim_func(check_well_formed=False)
def outer_variable(A: T.Buffer((8, 6), "int32"), C: T.Buffer((8, 6), "int32")) -> None:
    for i, j in T.grid(8, 6):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + i * 10 + j


@T.prim_func
def triangular(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6, 6), "int32")) -> None:
    for i in range(6):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.spatial(6, j)
                C[vi, vj] = A[vi, vj] + 1


@T.prim_func
def shifted_loops(A: T.Buffer((10,), "int32"), C: T.Buffer((10,), "int32")) -> None:
    B = T.alloc_buffer((10,), "int32")
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * 2
    for i in range(2, 9):
        with T.block("C"):
            vi = T.axis.spatial(10, i)
            C[vi] = B[vi] + B[vi - 2]


@T.prim_func
def data_extent(
    A: T.Buffer((8,), "int32"), N: T.Buffer((1,), "uint8"), C: T.Buffer((8,), "int32")
) -> None:
    for i in range(T.min(T.Cast("int32", N[0]), 8)):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = A[vi] + 1


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
