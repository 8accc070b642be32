"""Small programs that tests and benchmarks of schedules start from."""

from weft.script import tir as T


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (32, 20))
    B = T.match_buffer(b, (20, 24))
    C = T.match_buffer(c, (32, 24))
    for i, j, k in T.grid(32, 24, 20):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def elementwise_chain(a: T.handle, d: T.handle) -> None:
    A = T.match_buffer(a, (16, 12))
    B = T.alloc_buffer((16, 12))
    C = T.alloc_buffer((16, 12))
    D = T.match_buffer(d, (16, 12))
    for i, j in T.grid(16, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 12):
        with T.block("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * C[vi, vj]


@T.prim_func
def padded(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (6,), "int32")
    B = T.alloc_buffer((6,), "int32")
    C = T.match_buffer(c, (8,), "int32")
    for i in range(6):
        with T.block("B"):
            vi = T.axis.spatial(6, i)
            B[vi] = A[vi] + 1
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.if_then_else(1 <= vi and vi < 7, B[vi - 1], 5)


@T.prim_func
def symbolic_fill(a: T.handle, n: T.int32) -> None:
    A = T.match_buffer(a, (n, 8))
    for i, j in T.grid(n, 8):
        with T.block("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(1)
