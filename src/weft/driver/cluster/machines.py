"""A pool of machines of a Ray cluster: each does jobs, and one that is lost loses its jobs only.

Ray (Moritz et al., "Ray: a distributed framework for emerging AI applications", OSDI 2018) starts
an actor, a process with a ``Host``, on each machine, carries calls there, and says when a machine
is gone. A job whose machine is lost is done once more by another. Machines that join the cluster
later are used as well. There are as many threads here as jobs that machines do at once: each takes
a job from the queue, waits for the answer, and takes the next.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

import ray
from ray.exceptions import GetTimeoutError, RayError, RaySystemError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from weft.driver.cluster.errors import JobLostError, NoMachineError
from weft.driver.cluster.host import About, Host, about_here
from weft.support.errors import IRValueError
from weft.support.functions_by_value import dumps

_TRIES: Final = 2
"""So many machines may be lost with a job: one that kills its machine must not kill all."""
_START_SECONDS: Final = 120.0
"""How long a machine may take to start its process, and a job waits for a machine."""
_STARTS: Final = 3
"""A machine is left out when its process could not be started so often."""
_PAUSE: Final = 0.05
_LOOK_SECONDS: Final = 1.0
"""After so many seconds the cluster is asked again which machines there are."""


@dataclass(eq=False)
class _Job:
    method: str
    request: bytes
    future: Future[Any]
    losses: int = 0


@dataclass(eq=False)
class _Machine:
    """A node of the cluster, and the process there, which does ``slots`` jobs at once."""

    node: str
    slots: int
    actor: Any
    is_ready: bool = False
    is_lost: bool = False


@dataclass(eq=False)
class _State:
    """What the threads of a pool share; they know nothing of the pool, which may go."""

    setup: bytes
    kind: str | None
    jobs_at_once: int | None
    seconds: float
    jobs: queue.SimpleQueue[_Job | None] = field(default_factory=queue.SimpleQueue)
    lock: threading.RLock = field(default_factory=threading.RLock)
    machines: dict[str, _Machine] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Nodes that are not used -> why."""
    failures: Counter[str] = field(default_factory=Counter)
    """Node -> how often its process could not be started."""
    generation: Counter[str] = field(default_factory=Counter)
    """Node -> how many processes it has lost."""
    processor: str = ""
    """That of the first machine."""
    threads: int = 0
    looked: float = float("-inf")
    is_waiting: bool = False
    is_closed: bool = False

    @property
    def slots(self) -> int:
        """How many jobs the machines that are ready do at once."""
        return sum([machine.slots for machine in self.machines.values() if machine.is_ready])

    def close(self) -> None:
        """Let the machines go; jobs that nobody has begun are lost."""
        with self.lock:
            self.is_closed = True
            self.machines.clear()
            _fail_waiting_jobs(self, "the machines were let go")
            for _ in range(self.threads):
                self.jobs.put(None)


class Machines:
    """Machines of a cluster that do jobs.

    Args:
        part: called on each machine: gives the object whose methods do the jobs there.
        address: the cluster, as ``ray.init`` takes it; "auto" is the one of this machine. If this
            process has joined a cluster already, it is that one.
        kind: the machines to use: those with a resource of this name (``ray start
            --resources='{"zen4": 1}'``). A machine gives one unit of it, and its processors, to one
            search at a time. None: all machines.
        jobs_at_once: the jobs that a machine does at once; None: as many as it has processors.
        seconds: a machine that does not answer for so long counts as lost.

    weft must be installed on each machine, in the same version. All must have the same processor:
    those with another one than the first are left out, with a warning.
    """

    def __init__(
        self,
        part: Callable[[], object],
        *,
        address: str = "auto",
        kind: str | None = None,
        jobs_at_once: int | None = 1,
        seconds: float = 600.0,
    ) -> None:
        _join(address)
        self._state = _State(dumps(part), kind, jobs_at_once, seconds)
        weakref.finalize(self, self._state.close)
        _look(self._state)

    def submit(self, method: str, *arguments: object) -> Future[Any]:
        """Have a method of the part called on some machine.

        The result of the future is what it returns. What it raises is raised by the future;
        NoMachineError if there is no machine, JobLostError if those that tried were lost.
        """
        job = _Job(method, dumps(arguments), Future())
        if self._state.is_closed:
            raise IRValueError("the machines were let go; use a new builder, runner or search")
        self._state.jobs.put(job)
        _look(self._state)
        return job.future

    @property
    def capacity(self) -> int:
        """How many jobs the machines do at once now; 0 while none is ready."""
        return self._state.slots

    def wait(self, seconds: float = _START_SECONDS) -> None:
        """Wait until all machines that there are have started.

        Raises NoMachineError where none has within some seconds.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            _look(self._state)
            with self._state.lock:
                machines = list(self._state.machines.values())
            if machines and all(machine.is_ready for machine in machines):
                return
            time.sleep(_PAUSE)
        if not self.capacity:
            raise NoMachineError(_nobody(self._state))

    def close(self) -> None:
        """Let the machines go; they go by themselves with the pool, too."""
        self._state.close()


def _join(address: str) -> None:
    """Join the cluster. Raises IRValueError if there is none."""
    if ray.is_initialized():
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level="WARNING")
    except (ConnectionError, RayError, ValueError, RuntimeError) as error:
        first = str(error).strip().splitlines()[0]
        raise IRValueError(
            f"expected the address of a Ray cluster, got {address!r}: {first}; `ray start --head` "
            "begins one"
        ) from error


def _look(state: _State) -> None:
    """Start processes on the machines that have none; wait for a machine if there is none."""
    with state.lock:
        if not ray.is_initialized():  # by ray.shutdown(); to ask Ray anything would begin a cluster
            state.is_closed = True
            _fail_waiting_jobs(state, "this process has left the cluster")
        now = time.monotonic()
        if state.is_closed or now - state.looked < _LOOK_SECONDS:
            return
        state.looked = now
        for node in ray.nodes():
            name, has = node["NodeID"], node["Resources"]
            is_known = name in state.machines or name in state.refused
            is_wanted = node["Alive"] and has.get("CPU") and (not state.kind or state.kind in has)
            if is_wanted and not is_known:
                slots = state.jobs_at_once or max(1, int(has["CPU"]))
                actor = _actor(name, state.generation[name], has["CPU"], state.kind)
                machine = _Machine(name, slots, actor)
                state.machines[name] = machine
                _thread(_start, state, machine)
        if not state.slots and not state.is_waiting:
            state.is_waiting = True
            _thread(_wait, state)


def _thread(function: Callable[..., None], *arguments: object) -> None:
    threading.Thread(target=function, args=arguments, daemon=True).start()


def _actor(node: str, generation: int, processors: float, kind: str | None) -> Any:
    """The process on a node, which all pools of this process share.

    Each generation has a name of its own, since that of a lost process is not free at once.
    """
    remote = ray.remote(Host).options(
        name=f"weft {generation} on {node}",
        get_if_exists=True,
        num_cpus=processors,
        resources={kind: 1} if kind else {},
        scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        max_concurrency=int(2 * processors) + 2,  # a pool of builders, one of runners, questions
    )
    return remote.remote()


def _start(state: _State, machine: _Machine) -> None:
    """Wait for a machine to be ready; then this thread and others give it jobs."""
    try:
        about = About(*_answer(machine.actor.about.remote(), _START_SECONDS))
    except RayError as error:
        _leave(state, machine, error)
        return
    with state.lock:
        wrong = _difference(state, about)
        if wrong:
            state.refused[machine.node] = wrong
            del state.machines[machine.node]
        machine.is_ready = not wrong
    if wrong:
        warnings.warn(f"a machine of the cluster is left out: {wrong}", stacklevel=1)
        return
    for _ in range(machine.slots):
        _thread(_serve, state, machine)


def _answer(reference: Any, seconds: float) -> Any:
    """The answer to a call. That this process leaves the cluster meanwhile is an error, too."""
    try:
        return ray.get(reference, timeout=seconds)
    except SystemExit as error:  # which Ray raises then, in the thread that waits
        raise RaySystemError("this process has left the cluster") from error


def _difference(state: _State, about: About) -> str:
    """Why a machine cannot be used; nothing if it can."""
    here = about_here()
    state.processor = state.processor or about.processor
    for what, own, wanted in (
        ("weft", about.weft, here.weft),
        ("Python", about.python, here.python),
        ("processor", about.processor, state.processor),
    ):
        if own != wanted:
            return f"expected {what} {wanted:.60}, found {own:.60}"
    return ""


def _serve(state: _State, machine: _Machine) -> None:
    """Give a machine one job after the other until it is lost or the pool is closed."""
    with state.lock:
        state.threads += 1
    try:
        while (job := state.jobs.get()) is not None:
            if machine.is_lost:
                state.jobs.put(job)
                return
            if not _did(state, machine, job):
                return
    finally:
        with state.lock:
            state.threads -= 1


def _did(state: _State, machine: _Machine, job: _Job) -> bool:
    """Have a machine do a job. False if the machine is lost."""
    try:
        reference = machine.actor.do.remote(state.setup, job.method, job.request)
        answer = _answer(reference, state.seconds)
    except RayTaskError as error:  # what the job itself raised
        job.future.set_exception(error.cause if isinstance(error.cause, Exception) else error)
    except RayError as error:
        job.losses += 1
        if job.losses < _TRIES and not state.is_closed:
            state.jobs.put(job)
        else:
            job.future.set_exception(JobLostError(f"{job.losses} machines were lost with it"))
        _leave(state, machine, error)
        return False
    else:
        job.future.set_result(answer)
    return True


def _leave(state: _State, machine: _Machine, error: RayError) -> None:
    """Use a process no more. Its node gets another one, unless that fails several times."""
    is_late = isinstance(error, GetTimeoutError)
    with state.lock:
        is_first = not machine.is_lost
        was_ready, machine.is_ready, machine.is_lost = machine.is_ready, False, True
        if is_first and state.machines.get(machine.node) is machine:
            del state.machines[machine.node]
            state.generation[machine.node] += 1
        if is_first and not was_ready and not is_late:
            state.failures[machine.node] += 1
        if state.failures[machine.node] >= _STARTS:
            state.refused[machine.node] = str(error).strip().splitlines()[0]
        if was_ready:
            state.looked = float("-inf")
    if is_first and is_late:  # nothing that it still does may disturb what comes next
        with contextlib.suppress(RayError):
            ray.kill(machine.actor)
    _look(state)


def _wait(state: _State) -> None:
    """Look for machines for some time; if none comes, the jobs that wait have failed."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and not state.slots and not state.is_closed:
        time.sleep(_LOOK_SECONDS)
        _look(state)
    with state.lock:
        state.is_waiting = False
        if not state.slots:
            _fail_waiting_jobs(state, _nobody(state))


def _fail_waiting_jobs(state: _State, why: str) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            job = state.jobs.get_nowait()
            if job is not None:
                job.future.set_exception(NoMachineError(why))


def _nobody(state: _State) -> str:
    wanted = f" with the resource {state.kind!r}" if state.kind else ""
    reasons = "".join([f"; one was left out: {reason}" for reason in state.refused.values()])
    return (
        f"expected a machine of the cluster{wanted} whose processors are free, found none within "
        f"{_START_SECONDS:.0f} seconds{reasons}"
    )
