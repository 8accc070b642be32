"""Programs with traps (tests.lib.dangerous_programs): each call is refused or keeps the result.

Every call of every primitive that has arguments here is tried on every program, alone and after
other edits. Loops that may run in any order are run backwards too.
"""

import numpy as np
import pytest

import weft
from tests.lib.dangerous_programs import PROGRAMS, SIZES
from weft import tir
from weft.ir.functor import Mutator, rewrite, substitute
from weft.ir.structural import structural_equal
from weft.support.errors import InternalError, IRValueError, ScheduleError
from weft.testing.schedules import random_arguments
from weft.tir.analysis import ThreadMemoryError, verify_thread_memory
from weft.tir.interp import run
from weft.tir.schedule import tree
from weft.tir.stmt import Block, For, ForKind

pytestmark = pytest.mark.sampled(2)

ANY_ORDER = (ForKind.PARALLEL, ForKind.VECTORIZED)


class Backwards(Mutator):
    """Loops whose iterations are independent, as serial loops from the last one to the first."""

    def visit_For(self, node):
        """The loop with ``extent - 1 - i`` for ``i``."""
        body = self.visit(node.body)
        if node.kind not in ANY_ORDER:
            return node.with_(body=body)
        turned = substitute(body, {node.loop_var: node.extent - 1 - node.loop_var})
        return For(node.loop_var, node.min, node.extent, ForKind.SERIAL, turned)


def loops_of_any_order(func):
    found = []
    rewrite(func.body, lambda item: found.append(item) if isinstance(item, For) else None)
    return any(item.kind in ANY_ORDER for item in found)


def calls_on_block(sch, name, others):
    """Calls that concern one block, as (method, arguments)."""
    block = sch.get(name)
    rank = len(block.iter_vars)
    yield "compute_inline", (name,)
    yield "reverse_compute_inline", (name,)
    yield "cache_index", (name, "global")
    for kind, regions in (("read", block.reads), ("write", block.writes)):
        for place, region in enumerate(regions):
            ndim = len(region.buffer.shape)
            yield f"cache_{kind}", (name, place, "global")
            yield "reindex", (name, (kind, place))
            yield f"reindex_cache_{kind}", (name, place, "global", lambda *v: v)
            yield f"reindex_cache_{kind}", (name, place, "global", lambda *v: v[::-1])
            yield f"reindex_cache_{kind}", (name, place, "global", lambda *v: v[:1])
            if any(region.buffer in b.alloc_buffers for b in blocks_of(sch)):
                yield "transform_layout", (name, (kind, place), lambda *v: v[::-1])
                yield "transform_layout", (name, (kind, place), lambda *v: (*v[:-1], v[-1] // 2,
                                                                         v[-1] % 2), 0)  # fmt: skip
                yield "transform_layout", (name, (kind, place), lambda *v: (*v[:-1], v[-1] // 3,
                                                                         v[-1] % 3), 0)  # fmt: skip
                yield "transform_layout", (name, (kind, place), lambda *v: (*v[:-1], v[-1] // 2))
                yield "set_axis_separator", (name, (kind, place), [1] if ndim > 1 else [])
        if kind == "read":
            for place in range(len(regions)):
                yield "cache_inplace", (name, place, "global")
    for place in range(len(block.writes)):
        for scope in ("local", "shared"):
            yield "set_scope", (name, place, scope)
        yield "storage_align", (name, place, 0, 4, 1)
        yield "rolling_buffer", (name, place)
    if rank:
        yield "transform_block_layout", (name, lambda *v: v[::-1])
        yield "transform_block_layout", (name, lambda *v: (sum(v[1:], v[0] * 8),))
        yield "transform_block_layout", (name, lambda *v: (*v[:-1], v[-1] // 2, v[-1] % 2))
        yield "reorder_block_iter_var", (name, list(range(rank))[::-1])
        yield "pad_einsum", (name, [4] * rank)
        yield "pad_einsum", (name, [1] * (rank - 1) + [3])
    yield "add_unit_loop", (name,)
    if len(others) > 1:
        yield "blockize", ([name, others[(others.index(name) + 1) % len(others)]],)


def calls_on_loops(sch, name, others):
    """Calls that concern loops of a block, as (method, arguments)."""
    loops = sch.get_loops(name)
    for loop in loops:
        for factors in ([None, 2], [None, 3], [2, None], [None, 1]):
            yield "split", (loop, factors)
        yield "loop_partition", (loop, [3, None])
        for kind in ("parallel", "vectorize", "unroll", "blockize", "add_unit_loop"):
            yield kind, (loop,)
        for tag in ("threadIdx.x", "blockIdx.x", "vthread.x"):
            yield "bind", (loop, tag)
        for place in (0, -1):
            yield "rfactor", (loop, place)
        yield "decompose_reduction", (name, loop)
        yield "decompose_padding", (name, loop)
        for other in others:
            for index in (-1, -2):
                yield "compute_at", (other, loop, False, index)
                yield "reverse_compute_at", (other, loop, False, index)
        for kind, regions in (("read", sch.get(name).reads), ("write", sch.get(name).writes)):
            for place in range(len(regions)):
                yield f"{kind}_at", (loop, name, place, "shared")
    for first in range(len(loops) - 1):
        yield "fuse", loops[first : first + 2]
        yield "reorder", loops[first : first + 2][::-1]
    if len(loops) > 2:
        yield "reorder", loops[::-1]
        yield "reorder", [loops[2], loops[0]]
    for other in others:
        yield "merge", (loops[-1:] + sch.get_loops(other)[-1:])


def blocks_of(sch):
    found = [item for item in tree.all_references(sch.mod["main"].body) if isinstance(item, Block)]
    return found


def every_call(sch):
    names = list(dict.fromkeys([block.name_hint for block in blocks_of(sch)[1:]]))
    for name in names:
        yield from calls_on_block(sch, name, names)
        yield from calls_on_loops(sch, name, names)


class Oracle:
    """The results of a program on random arguments, and whether another program has the same."""

    def __init__(self, func):
        self.given = [random_arguments(func, SIZES, seed) for seed in range(2)]
        self.expected = [self.results(func, given) for given in self.given]

    def results(self, func, given):
        copies = [np.array(g) if isinstance(g, np.ndarray) else g for g in given]
        run(func, *copies)
        return [item for item in copies if isinstance(item, np.ndarray)]

    def check(self, func):
        """Forwards and backwards."""
        variants = [func]
        if loops_of_any_order(func):
            variants.append(func.with_(body=Backwards().visit(func.body)))
        for variant in variants:
            for given, wanted in zip(self.given, self.expected, strict=True):
                found = self.results(variant, given)
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(a, b)


def text(call):
    name, arguments = call
    return f"{name}{tuple(getattr(a, 'hint', a) for a in arguments)}"


def attempt(sch, call):
    """The call; whether it was made. A refusal is short, and leaves the program as it was."""
    name, arguments = call
    before, steps = sch.mod, len(sch.trace.insts)
    refusal = None
    try:
        getattr(sch, name)(*arguments)
    except weft.TVMError as error:
        refusal = error
    if refusal is None:
        return True
    assert not isinstance(refusal, InternalError), f"{text(call)}: {refusal}"
    assert len(str(refusal).splitlines()) <= 10, f"{text(call)}: {refusal}"
    assert sch.mod is before or structural_equal(sch.mod, before)
    assert all(inst.kind.is_pure for inst in sch.trace.insts[steps:])
    return False


@pytest.mark.no_replay("each schedule is replayed where it was made")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_call_is_refused_or_keeps_the_result(name):
    func = PROGRAMS[name]
    oracle = Oracle(func)
    start = tir.Schedule(func)
    wrong = []
    for call in list(every_call(start)):
        sch = start.copy()
        try:
            if attempt(sch, call):
                verify_thread_memory(sch.mod)
                oracle.check(sch.mod["main"])
        except (ScheduleError, IRValueError, ThreadMemoryError):  # lowering refuses these threads
            continue
        except Exception as error:  # noqa: BLE001 - all are shown together
            wrong.append(f"{text(call)}: {type(error).__name__} {str(error)[:600]}")
    assert not wrong, f"{len(wrong)} calls:\n" + "\n\n".join(wrong)
