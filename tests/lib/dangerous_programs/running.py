"""Programs with ordered axes: values that run along an axis, and are stored on the way.

Rows are independent where each has a running value of its own; steps never are.
"""

from weft.script import tir as T


@T.prim_func
def running_sums(A: T.Buffer((6, 5), "int32"), D: T.Buffer((6, 5), "int32")) -> None:
    B = T.alloc_buffer((6, 5), "int32")
    C = T.alloc_buffer((6, 5), "int32")
    running = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("B"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi, vk] = A[vi, vk] * 2
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[vi] = 0
            running[vi] = running[vi] + B[vi, vk]
            C[vi, vk] = running[vi]
    for i, k in T.grid(6, 5):
        with T.block("D"):
            vi, vk = T.axis.remap("SS", [i, k])
            D[vi, vk] = C[vi, vk] + 1


@T.prim_func
def running_sums_before(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
    running = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[vi] = 0
            C[vi, vk] = running[vi]
            running[vi] = running[vi] * 2 + A[vi, vk]


@T.prim_func
def one_running_value(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
    running = T.alloc_buffer((1,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[0] = 0
            running[0] = running[0] * 2 + A[vi, vk]
            C[vi, vk] = running[0]


@T.prim_func
def on_from_row_to_row(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
    running = T.alloc_buffer((1,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.scan(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[0] = 0
            running[0] = running[0] * 2 + A[vi, vk]
            C[vi, vk] = running[0]


@T.prim_func
def totals_too(
    A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32"), D: T.Buffer((6,), "int32")
) -> None:
    running = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[vi] = 1
            running[vi] = running[vi] * 2 + A[vi, vk]
            C[vi, vk] = running[vi]
    for i in range(6):
        with T.block("D"):
            vi = T.axis.spatial(6, i)
            D[vi] = running[vi] * 3


@T.prim_func
def reads_its_results(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
    running = T.alloc_buffer((6,), "int32")
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            with T.init():
                running[vi] = 0
            C[vi, vk] = running[vi] + A[vi, vk]
            running[vi] = C[vi, vk] * 2 - C[0, vk]


@T.prim_func
def started_elsewhere(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6, 5), "int32")) -> None:
    running = T.alloc_buffer((6,), "int32")
    for i in range(6):
        with T.block("running"):
            vi = T.axis.spatial(6, i)
            running[vi] = vi
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            running[vi] = running[vi] * 2 + A[vi, vk]
            C[vi, vk] = running[vi]


@T.prim_func
def last_one_stays(A: T.Buffer((6, 5), "int32"), C: T.Buffer((6,), "int32")) -> None:
    for i, k in T.grid(6, 5):
        with T.block("C"):
            vi = T.axis.spatial(6, i)
            vk = T.axis.scan(5, k)
            C[vi] = A[vi, vk]
