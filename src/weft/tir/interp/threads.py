"""GPU kernels in the interpreter: blocks run one after the other, their threads are coroutines.

The outermost statement that is bound to threads is a kernel. In each block, every thread (also each
virtual thread) runs the kernel's body; a loop bound to a thread axis runs once, with the thread's
index. At a barrier, or at a reduction over threads, a thread waits for the others. Each block has
its own shared memory, each warp of 32 threads its own warp memory, each thread its own local
memory; other memory is shared by the threads with equal indices in the loops around its allocation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from typing import Protocol

import numpy as np

from weft.ir.functor import collect
from weft.support.errors import RuntimeFault
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.loops import Request, Steps, Waiting
from weft.tir.interp.races import RaceLog, WatchedBound
from weft.tir.interp.state import Action, Bound, State
from weft.tir.interp.steps import Compiler, StepCompiler
from weft.tir.interp.values import Value
from weft.tir.stmt import Evaluate
from weft.tir.transform.threads.cross_thread_reduction import lower_cross_thread_reduction
from weft.tir.transform.threads.thread_scope import (
    WARP_SIZE,
    Binding,
    bindings_in,
    has_threads,
    sync_of,
    thread_text,
)
from weft.tir.transform.threads.thread_sync import thread_sync
from weft.tir.transform.threads.unify_thread_binding import unify_thread_binding

_POISON = 0x55


def prepared(func: PrimFunc) -> PrimFunc:
    """The function prepared for threads: reductions over threads are explicit, barriers inserted.

    If the function has any barrier itself, no others are inserted.
    """
    if not has_threads(func.body):
        return func
    func = lower_cross_thread_reduction(func)
    if any(sync_of(stmt) for stmt in collect(func.body, Evaluate)):
        return func
    unified = unify_thread_binding(func)
    for scope in ("shared", "warp"):
        unified = thread_sync(unified, scope, strict=False)
    return unified


class Thread:
    """One thread of a running kernel."""

    def __init__(self, team: Team, index: dict[str, int], number: int) -> None:
        self.team, self.index, self.number = team, index, number
        virtual = tuple([index[tag] for tag in team.kernel.thread_tags if tag.startswith("v")])
        self.warp = (virtual, number % team.kernel.real_threads // WARP_SIZE)
        self.own: set[int] = set()

    def memory_for(
        self, data: Var, scope: str, tags: tuple[str, ...], make: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """The memory of an allocation; the first of the threads that share it allocates it."""
        if scope == "local":
            return self.private(make())
        if scope == "shared":
            key: tuple[object, ...] = (id(data), "shared")
        elif scope == "warp":
            key = (id(data), "warp", self.warp)
        else:
            inner = [tag for tag in self.team.kernel.thread_tags if tag in tags]
            if len(inner) == len(self.team.kernel.thread_tags):
                return self.private(make())
            key = (id(data), *[self.index[tag] for tag in inner])
        memory = self.team.memory.get(key)
        if memory is None:
            memory = self.team.hold(key, make())
            if scope in ("shared", "warp") and memory.dtype.kind != "b":
                memory.view(np.uint8)[...] = _POISON  # reads of unwritten elements show up
        return memory

    def private(self, array: np.ndarray) -> np.ndarray:
        """Record that memory belongs to this thread alone."""
        self.own.add(_base(array))
        return array

    def watched(self, bound: Bound) -> Bound:
        """The buffer, with its accesses recorded if other threads can access its memory."""
        base = _base(bound.array)
        if base in self.own:
            return bound
        logs = [(self.team.log, self.number)]
        if base not in self.team.own:
            logs.append((self.team.kernel.grid, self.team.number))
        return WatchedBound(bound, logs)


def _base(array: np.ndarray) -> int:
    """The identity of the memory that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return int(array.__array_interface__["data"][0])


class Team:
    """The threads of one block."""

    def __init__(self, kernel: Kernel, number: int) -> None:
        self.kernel, self.number = kernel, number
        self.memory: dict[tuple[object, ...], np.ndarray] = {}
        self.log = RaceLog("thread")
        self.own: set[int] = set()

    def hold(self, key: tuple[object, ...], array: np.ndarray) -> np.ndarray:
        """Record memory that only the threads of this block share."""
        self.memory[key] = array
        self.own.add(_base(array))
        return array


class Machine(Compiler, Protocol):
    """The compiler of a function; while ``kernel`` is set, it compiles for its threads."""

    kernel: Kernel | None


class Kernel:
    """A kernel: compiles its body, and launches it."""

    def __init__(self, machine: Machine, outermost: Binding) -> None:
        self.machine, self.outermost = machine, outermost
        self.bindings = bindings_in(outermost.stmt)
        self.extents = [(b.tag, machine.expression(b.extent)) for b in self.bindings]
        tags = list(dict.fromkeys([b.tag for b in self.bindings]))
        self.block_tags = [tag for tag in tags if tag.startswith("blockIdx.")]
        self.thread_tags = sorted([tag for tag in tags if tag not in self.block_tags], reverse=True)
        self.real_threads = 1
        """The number of threads of a block without virtual ones; set at launch."""
        self.grid = RaceLog("block")
        self.variables = {id(b.var): b.tag for b in self.bindings}

    def action(self) -> Action:
        """The closure that launches the kernel."""
        machine = self.machine
        machine.kernel = self
        try:
            body: Steps | Action | None = StepCompiler(machine, self).steps(self.outermost.stmt)
            if body is None:
                body = machine.compile(self.outermost.stmt)
        finally:
            machine.kernel = None
            machine.tags = ()

        kernel = body

        def launch(state: State) -> None:
            sizes: dict[str, int] = {}
            for tag, extent in self.extents:
                sizes[tag] = max(sizes.get(tag, 0), int(extent(state)))
            self.grid = RaceLog("block")
            real = [sizes[tag] for tag in self.thread_tags if not tag.startswith("v")]
            self.real_threads = max(1, math.prod(real))
            blocks = [range(sizes[tag]) for tag in self.block_tags]
            for number, place in enumerate(itertools.product(*blocks)):
                indices = dict(zip(self.block_tags, place, strict=True))
                self.grid.names[number] = thread_text(indices)
                self.run_block(state, Team(self, number), indices, sizes, kernel)

        return launch

    def run_block(
        self,
        state: State,
        team: Team,
        place: dict[str, int],
        sizes: dict[str, int],
        body: Steps | Action,
    ) -> None:
        """Run all threads of a block, from barrier to barrier."""
        threads: list[tuple[Thread, State]] = []
        ranges = [range(sizes[tag]) for tag in self.thread_tags]
        for number, inner in enumerate(itertools.product(*ranges)):
            indices = dict(zip(self.thread_tags, inner, strict=True))
            team.log.names[number] = thread_text(indices)
            thread = Thread(team, {**place, **indices}, number)
            threads.append((thread, _state_of(state, thread)))
        waiting = [steps for steps in [body(own) for _, own in threads] if steps is not None]
        if waiting:  # a body without barriers has run already
            _Scheduler(team, [thread for thread, _ in threads], waiting).run()

    def select(self, binding: Binding) -> Action:
        """Inside of the kernel: runs the body of a loop once, for the thread's index."""
        enter, body = self.entry(binding), self.inside(binding)

        def run(state: State) -> None:
            if enter(state):
                body(state)

        return run

    def inside(self, binding: Binding) -> Action:
        """The closure of the body, whose allocations have one more thread axis around them."""
        outer, self.machine.tags = self.machine.tags, (*self.machine.tags, binding.tag)
        body = self.machine.compile(binding.body)
        self.machine.tags = outer
        return body

    def entry(self, binding: Binding) -> Callable[[State], bool]:
        """An action that sets the bound variable; it returns False beyond the loop's extent."""
        low = None if binding.low is None else self.machine.expression(binding.low)
        extent, key, tag = self.machine.expression(binding.extent), id(binding.var), binding.tag

        def enter(state: State) -> bool:
            assert state.thread is not None
            index = state.thread.index[tag]
            state.values[key] = index if low is None else low(state) + index
            return index < int(extent(state))

        return enter


def _state_of(parent: State, thread: Thread) -> State:
    """The initial state of a thread: the parent's values; non-global memory is allocated anew."""
    own = State(parent.machine)
    own.thread = thread
    own.values = dict(parent.values)
    for key, array in parent.memory.items():
        scope = parent.scopes.get(key, "global")
        if scope in ("local", "shared", "warp"):
            own.memory[key] = _renewed(array, scope, key, thread)
        else:
            own.memory[key] = array
    fresh = {
        _base(parent.memory[key])
        for key in parent.memory
        if own.memory[key] is not parent.memory[key]
    }
    for key, bound in parent.buffers.items():
        if _base(bound.array) not in fresh:
            own.buffers[key] = thread.watched(bound)
    return own


def _renewed(array: np.ndarray, scope: str, key: int, thread: Thread) -> np.ndarray:
    if scope == "local":
        return thread.private(np.zeros_like(array))
    place = (key, scope, thread.warp if scope == "warp" else (), "outer")
    copy = thread.team.memory.get(place)
    if copy is None:
        copy = thread.team.hold(place, np.zeros_like(array))
    return copy


class _Scheduler:
    """Runs the threads of a block; waiting threads continue when all of their group wait."""

    def __init__(self, team: Team, threads: list[Thread], running: list[Waiting]) -> None:
        self.team, self.threads = team, threads
        self.running = dict(enumerate(running))
        self.waiting: dict[int, Request] = {}
        self.ended: set[int] = set()

    def run(self) -> None:
        """Run until all threads have ended."""
        for number in list(self.running):
            self.advance(number, None)
        while self.waiting:
            if not self.release():
                self.stuck()

    def advance(self, number: int, answer: list[Value] | None) -> None:
        try:
            self.waiting[number] = self.running[number].send(answer)
        except StopIteration:
            self.ended.add(number)

    def release(self) -> bool:
        """Continue the groups whose threads all wait; returns whether there is one."""
        groups: dict[tuple[str, int, Hashable], list[int]] = {}
        for number, request in self.waiting.items():
            groups.setdefault((request.kind, request.site, request.group), []).append(number)
        moved = False
        for (kind, _, key), members in groups.items():
            if sorted(members) != self.expected(kind, key):
                continue
            moved = True
            requests = [self.waiting.pop(number) for number in sorted(members)]
            answer = None
            combine = requests[0].combine
            if combine is not None:
                answer = combine([request.share for request in requests if request.share])
            elif kind == "shared":
                self.team.log.clear()
            for number in sorted(members):
                self.advance(number, answer)
        return moved

    def expected(self, kind: str, group: Hashable) -> list[int]:
        """The threads that must all wait before any of them continues."""
        if kind == "warp":
            return [t.number for t in self.threads if t.warp == group]
        if kind == "allreduce":
            agreed = group if isinstance(group, tuple) else ()
            return [
                t.number
                for t in self.threads
                if all(t.index[tag] == index for tag, index in agreed)
            ]
        return [t.number for t in self.threads]

    def stuck(self) -> None:
        number, request = next(iter(self.waiting.items()))
        names = self.team.log.names
        absent = [n for n in self.expected(request.kind, request.group) if n not in self.waiting]
        where = "ended" if absent else "waits elsewhere"
        others = absent or [n for n in self.waiting if self.waiting[n].site != request.site]
        raise RuntimeFault(
            f"thread {names[number]} waits at a {request.kind} barrier that not all threads reach: "
            f"thread {names[others[0]] if others else '?'} {where}; a barrier must not stand in a "
            "branch or loop that differs between threads"
        )
