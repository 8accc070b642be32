"""Schedules with threads: what is lowered is right with threads, and only what is wrong is refused.

Every order of a few calls that set scopes, move blocks and bind loops. What the primitives take,
``verify_thread_memory`` judges; its judgement must be that of the threads of the interpreter, for
which a race is an error and memory that nobody wrote is poisoned.
"""

import itertools

import numpy as np
import pytest

import weft
from weft import script, tir
from weft.support.errors import RuntimeFault, ScheduleError
from weft.tir.analysis import ThreadMemoryError, find_thread_memory_fault, verify_thread_memory
from weft.tir.interp import run

pytestmark = pytest.mark.sampled(3)

CHAIN = """
@T.prim_func
def main(A: T.Buffer((4, 3), "int32"), C: T.Buffer((4, 3), "int32")):
    B = T.alloc_buffer((4, 3), "int32")
    for i, j in T.grid(4, 3):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = {} + 1
"""
SUM = """
@T.prim_func
def main(A: T.Buffer((4, 3), "int32"), C: T.Buffer((4, 3), "int32")):
    B = T.alloc_buffer((4,), "int32")
    for i, k in T.grid(4, 3):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0
            B[vi] = B[vi] + A[vi, vk]
    for i, j in T.grid(4, 3):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi] + vj
"""
SOURCES = {
    "same": CHAIN.format("B[vi, vj]"),
    "across": CHAIN.format("B[vi, 2 - vj]"),
    "window": CHAIN.format("B[vi, vj] - B[vi, T.max(vj - 1, 0)]"),
    "other_rows": CHAIN.format("B[3 - vi, vj]"),
    "sum": SUM,
}
PROGRAMS = {name: script.from_source(text, {"T": script.tir}) for name, text in SOURCES.items()}

CALLS = {
    "scope": lambda sch, scope, _: sch.set_scope("B", 0, scope),
    "producer": lambda sch, _, tag: sch.bind(sch.get_loops("B")[-1], tag),
    "consumer": lambda sch, _, tag: sch.bind(sch.get_loops("C")[-1], tag),
    "to_consumer": lambda sch, *_: sch.compute_at("B", sch.get_loops("C")[0]),
    "to_producer": lambda sch, *_: sch.reverse_compute_at("C", sch.get_loops("B")[0]),
    "copy": lambda sch, scope, _: sch.read_at(sch.get_loops("C")[0], "C", 0, "shared"),
    "rows": lambda sch, *_: sch.bind(sch.get_loops("C")[0], "blockIdx.x"),
    "rows_before": lambda sch, *_: sch.bind(sch.get_loops("B")[0], "blockIdx.x"),
}


def orders():
    """Calls that make sense together, in every order."""
    for move in ("to_consumer", "to_producer", "copy", None):
        for rows in ("rows", "rows_before", None):
            for binds in (("producer", "consumer"), ("producer",), ("consumer",)):
                names = [name for name in ("scope", move, rows, *binds) if name]
                yield from itertools.permutations(names)


def results(func, **options):
    """What the function computes; None if it faults."""
    given = np.arange(12, dtype="int32").reshape(4, 3) * 7 + 1
    out = np.full((4, 3), -1, "int32")
    try:
        run(func, given, out, **options)
    except RuntimeFault:
        return None
    return out


def is_right(found, wanted):
    return found is not None and np.array_equal(found, wanted)


def programs_of(func, scope, tag, step):
    """The programs that schedules reach, each once; steps that are refused are left out."""
    known = {}
    for order in list(orders())[::step]:
        sch = tir.Schedule(func, debug_mask="none")
        made = []
        for name in order:
            try:
                CALLS[name](sch, scope, tag)
                made.append(name)
            except ScheduleError:
                continue
        known.setdefault(str(sch.mod["main"]), (sch.mod["main"], made))
    return known.values()


@pytest.mark.no_replay("each of thousands of short schedules would be replayed")
@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tag", ["threadIdx.x", "vthread.x"])
@pytest.mark.parametrize("scope", ["global", "shared", "local"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_refused_is_what_threads_get_wrong(name, scope, tag, step):
    func = PROGRAMS[name]
    wanted = results(func)
    seen, wrong = set(), []
    for made, calls in programs_of(func, scope, tag, step):
        fault = find_thread_memory_fault(made)
        right = is_right(results(made, threads=True), wanted)
        seen.add(right)
        if right != (fault is None):
            wrong.append(f"{calls}: right {right}, but {fault}")
    assert not wrong, f"{len(wrong)} of these:\n" + "\n".join(wrong[:10])
    assert True in seen


def scheduled(name, scope, tag, *calls):
    sch = tir.Schedule(PROGRAMS[name])
    for call in calls:
        CALLS[call](sch, scope, tag)
    return sch.mod["main"]


FAULTS = [
    ("same", "shared", "vthread.x", ["scope", "producer", "consumer"],
     r"block C reads B_shared\[0, 0\], which block B writes in another nest of threads"),
    ("same", "shared", "threadIdx.x", ["scope", "producer", "consumer"],
     "shared memory belongs to one block of threads of one nest"),
    ("across", "local", "threadIdx.x", ["scope", "to_consumer", "rows", "consumer", "producer"],
     r"threadIdx.x=0\), reads B_local\[0, 2\], which block B writes in another thread"),
    ("same", "shared", "threadIdx.x", ["copy", "consumer"],
     "which block B_shared writes in another nest of threads"),
    ("same", "global", "threadIdx.x", ["rows_before", "producer", "to_producer"],
     "no barrier orders accesses of global memory in one nest"),
    ("sum", "shared", "threadIdx.x", ["scope", "to_consumer", "rows", "consumer"],
     "threads run one statement in no order"),
]  # fmt: skip


def test_what_follows_a_reduction_over_threads_has_its_result():
    """All threads have the sum; one of them stores it, all read what it stored."""
    calls = ["rows_before", "producer", "to_producer"]
    func = scheduled("sum", "global", "threadIdx.x", *calls)
    wanted = results(PROGRAMS["sum"])
    assert is_right(results(func, threads=True), wanted)
    out = weft.nd.array(np.zeros((4, 3), "int32"))
    weft.build(func)(weft.nd.array(np.arange(12, dtype="int32").reshape(4, 3) * 7 + 1), out)
    assert is_right(out.numpy(), wanted)


@pytest.mark.no_replay("the programs are in the test above")
@pytest.mark.parametrize(("name", "scope", "tag", "calls", "message"), FAULTS)
def test_building_refuses(name, scope, tag, calls, message):
    func = scheduled(name, scope, tag, *calls)
    with pytest.raises(ThreadMemoryError, match=message) as caught:
        weft.build(func)
    assert len(str(caught.value).splitlines()) <= 10
    assert not is_right(results(func, threads=True), results(PROGRAMS[name]))


MENDED = [
    ("same", "shared", "threadIdx.x", ["scope", "consumer", "to_consumer", "producer", "rows"]),
    ("across", "shared", "threadIdx.x", ["scope", "rows", "to_consumer", "consumer", "producer"]),
    ("same", "shared", "threadIdx.x", ["rows_before", "producer", "to_producer", "scope"]),
    ("sum", "local", "threadIdx.x", ["scope", "to_consumer", "rows", "consumer"]),
]


@pytest.mark.parametrize(("name", "scope", "tag", "calls"), MENDED)
def test_a_fault_on_the_way_is_mended_by_a_later_call(name, scope, tag, calls):
    func = scheduled(name, scope, tag, *calls)
    verify_thread_memory(func)
    built = weft.build(func.with_attr("global_symbol", "main"))
    given = np.arange(12, dtype="int32").reshape(4, 3) * 7 + 1
    out = weft.nd.array(np.zeros((4, 3), "int32"))
    built["main"](weft.nd.array(given), out)
    assert is_right(out.numpy(), results(PROGRAMS[name]))
    assert is_right(results(func, threads=True), results(PROGRAMS[name]))
