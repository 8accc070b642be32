"""Programs whose reductions are the trap: the init, the operator, the order, the extents."""

from weft.script import tir as T


@T.prim_func
def no_init(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(C[vi], A[vi, vk])
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def init_of_state(
    A: T.Buffer((6, 5), "int32"), D: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")
) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = D[vi] * 2
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def init_reads_output(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = C[vi] * 2 + 1
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def init_not_identity(A: T.Buffer((6, 8), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 8):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 10
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def not_commutative(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 1
            C[vi] = C[vi] * 2 + A[vi, vk]


@T.prim_func
def subtraction(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = A[vi, vk] - C[vi]


@T.prim_func
def reduced_outside(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for k, i in T.grid(5, 6):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def repeated_sum(A: T.Buffer((6, 4), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for t, i, k in T.grid(2, 6, 4):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def predicated_sum(A: T.Buffer((6, 10), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k0, k1 in T.grid(6, 4, 3):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.reduce(10, k0 * 3 + k1)
            T.where(k0 * 3 + k1 < 10)
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def triangular_sum(A: T.Buffer((6, 6), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i in range(6):
        for j in range(i + 1):
            with T.block("C"):
                vi = T.axis.spatial(6, i)
                vj = T.axis.reduce(6, j)
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vj]


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
def reduction_under_if(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        if i * 5 + k < 22:
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = 1
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def pair_sum(
    A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32"), D: T.Buffer((6,), "int32")
) -> None:
    for i, k in T.grid(6, 5):
        with T.block("CD"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
                D[vi] = 0
            C[vi] = C[vi] + A[vi, vk]
            D[vi] = D[vi] + C[vi]


@T.prim_func
def two_reductions(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
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
