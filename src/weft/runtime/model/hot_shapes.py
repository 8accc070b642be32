"""Programs of their own for the sizes that a model of symbolic sizes spends its time on.

A program for all sizes tests and computes what a program for one size knows. So the seconds of
calls are added up for each combination of extents. One that has taken long is *hot*: a program for
it is compiled in the background, and calls of these extents run it from then on. Results agree
within rounding: both programs are compiled from one graph, but may add in another order.

When to pay once for what makes each call cheaper is the problem of renting or buying skis (Karlin,
Manasse, Rudolph and Sleator, "Competitive snoopy caching", 1988): when as much is lost as it costs.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from weft.runtime.extent import names_in
from weft.runtime.vm.bytecode import Pattern
from weft.runtime.vm.patterns import symbol_axes
from weft.support.config import environment_int
from weft.support.errors import IRValueError, TVMError
from weft.support.forks import hold_over_forks

Extents = tuple[int, ...]
"""The value of each symbol, in the order of ``HotShapes.symbols``."""

AFTER_SECONDS: Final = 60
"""Default of ``WEFT_HOT_SECONDS``: a program takes 5 to 20 seconds of the processors to compile and
saves 10 to 30 percent of a call."""
MOST_MIB: Final = 1024
"""Default of ``WEFT_HOT_SIZE``: for the weights of all programs of one model's hot extents."""
THREAD_NAME: Final = "weft: a program for hot sizes"
"""The name of the threads that compile."""
_SHORT: Final = 1e-3
"""Of calls that take less than so many seconds, one of ``_EACH`` is timed and counts for all: to
time each takes a tenth of a small model's call."""
_EACH: Final = 7
"""An odd number, so that each of two sizes that take turns is timed."""
_REMEMBERED: Final = 512
"""How many combinations of extents have their seconds added up; beyond it, half are forgotten."""
_LOCK: Final = threading.RLock()
"""Guards what all models have noted, for moments. One for all: a fork waits until it is free."""
_LOG: Final = logging.getLogger(__name__)


class Callee(Protocol):
    """A compiled model, as this module sees it."""

    num_threads: int | None

    def run_as_compiled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
        """Run the program that the model was compiled to, whatever the sizes."""

    def given_inputs(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Sequence[Any]:
        """The inputs of the program as the caller holds them."""

    def constant_bytes(self) -> int:
        """How many bytes its weights have."""


Model = TypeVar("Model", bound=Callee)


class _Turns:
    """One compilation at a time in the background: one process beside this one.

    A forked child has none of its parent's threads, and begins anew.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def begin_anew(self) -> None:
        """Forget who has the turn."""
        self.lock = threading.Lock()


_TURNS: Final = _Turns()
hold_over_forks(_LOCK)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_TURNS.begin_anew)


class HotShapes(Generic[Model]):
    """The programs for hot extents of one model, and what calls of others have taken.

    Args:
        name: the model's name, for messages.
        places: for each symbol its name, and which axis of which input has its extent.
        most: how many combinations of extents get a program by themselves.
        compiler: makes the program for some extents, with the number of threads of its calls; it
            may take long, and raise TVMError.

    Any thread may call. A call that a program for its extents refuses runs the general program,
    whose errors name the symbols.
    """

    def __init__(
        self,
        name: str,
        places: Sequence[tuple[str, int, int]],
        most: int,
        compiler: Callable[[Extents, int | None], Model],
    ) -> None:
        self.name, self.symbols = name, tuple([symbol for symbol, _, _ in places])
        self._places = [(source, axis) for _, source, axis in places]
        self._most, self._compiler = most, compiler
        seconds = environment_int("WEFT_HOT_SECONDS")
        self._after = AFTER_SECONDS if seconds is None else seconds
        self._room = (environment_int("WEFT_HOT_SIZE", minimum=1) or MOST_MIB) << 20
        self._programs: dict[Extents, Model] = {}
        self._seconds: dict[Extents, float] = {}
        self._begun: set[Extents] = set()
        self._untimed = 0
        """How many of the next calls are not timed."""
        self._num_threads: int | None = None

    @property
    def extents(self) -> tuple[Extents, ...]:
        """The combinations of extents that have programs of their own."""
        return tuple(self._programs)

    def set_num_threads(self, count: int | None) -> None:
        """Let all programs run with so many threads; None: with the process's number."""
        self._num_threads = count
        for program in list(self._programs.values()):
            program.num_threads = count

    # Calls.

    def call(self, model: Model, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
        """A call of ``model``, by the program for its extents if there is one."""
        if self._untimed > 0 and not self._programs:
            self._untimed -= 1
            return model.run_as_compiled(args, kwargs)
        extents = self.extents_of(model, args, kwargs)
        if extents is None:
            return model.run_as_compiled(args, kwargs)
        program = self._programs.get(extents)
        if program is not None:
            try:
                return program.run_as_compiled(args, kwargs)
            except TVMError:
                return model.run_as_compiled(args, kwargs)
        begun = time.perf_counter()
        result = model.run_as_compiled(args, kwargs)
        seconds = time.perf_counter() - begun
        is_short = seconds < min(_SHORT, self._after)
        self._untimed = _EACH - 1 if is_short else 0
        self._note(extents, seconds * _EACH if is_short else seconds)
        return result

    def program_for(
        self, model: Model, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Model:
        """The program that such a call runs."""
        extents = self.extents_of(model, args, kwargs)
        return model if extents is None else self._programs.get(extents, model)

    def extents_of(
        self, model: Model, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Extents | None:
        """The extents of a call; None where its arguments have none, which the call refuses."""
        try:
            given: Sequence[Any] = model.given_inputs(args, kwargs)
            return tuple([int(given[source].shape[axis]) for source, axis in self._places])
        except Exception:  # noqa: BLE001 - whatever a stranger's tensor raises, the call explains
            return None

    # Compilation.

    def compile(self, extents: Extents) -> None:
        """Compile a program for these extents now, unless there is one.

        Raises IRValueError where its weights are more bytes than there is room for, and whatever
        the compiler raises.
        """
        if extents in self._programs:
            return
        begun = time.perf_counter()
        program = self._compiler(extents, self._num_threads)
        seconds = time.perf_counter() - begun
        _LOG.info("%s: compiled for the sizes %s in %.2f s", self.name, extents, seconds)
        with _LOCK:
            size = sum([item.constant_bytes() for item in (*self._programs.values(), program)])
            if size > self._room:
                raise IRValueError(
                    f"{self.name}: programs for single sizes would have {size >> 20} MiB of "
                    f"weights, and WEFT_HOT_SIZE is {self._room >> 20}"
                )
            self._programs[extents] = program

    def _note(self, extents: Extents, seconds: float) -> None:
        """Add the time of a call; where it makes its extents hot, compile in the background."""
        if extents not in self._seconds and len(self._seconds) >= _REMEMBERED:
            self._forget()
        total = self._seconds[extents] = self._seconds.get(extents, 0.0) + seconds
        if total < self._after or extents in self._begun:
            return
        with _LOCK:
            if extents in self._begun or len(self._begun) >= self._most:
                return
            self._begun.add(extents)
        thread = threading.Thread(
            target=self._compile_quietly, name=THREAD_NAME, args=(extents,), daemon=True
        )
        thread.start()

    def _compile_quietly(self, extents: Extents) -> None:
        """Compile in a thread of its own. What fails is logged: the general program stays."""
        try:
            with _TURNS.lock:
                self.compile(extents)
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread
            _LOG.warning("%s: no program for the sizes %s: %s", self.name, extents, error)

    def _forget(self) -> None:
        """Forget the half that took the shortest time."""
        with _LOCK:
            ordered = sorted(self._seconds.items(), key=lambda item: item[1])
            for extents, _ in ordered[: len(ordered) // 2]:
                self._seconds.pop(extents, None)


def places_of(params: Sequence[tuple[str, Pattern]]) -> list[tuple[str, int, int]] | None:
    """Each symbol in the shapes of parameters: its name, the input, the axis.

    None where there are no symbols, or where one stands in no shape by itself.

    >>> x, y = ("tensor", "float32", ("n", 4)), ("tensor", "float32", ("n * 2", 4))
    >>> places_of([("x", x), ("y", y)])
    [('n', 0, 0)]
    """
    patterns = [pattern for _, pattern in params]
    if any(pattern[0] != "tensor" or pattern[2] is None for pattern in patterns):
        return None
    used = {name for pattern in patterns for extent in pattern[2] for name in names_in(extent)}
    places = symbol_axes(patterns)
    if not places or used != set(places):
        return None
    return [(symbol, index, axis) for symbol, (index, axis) in places.items()]
