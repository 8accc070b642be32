"""Arguments for a function of ``random_memory``: what its shapes ask for, and what they do not.

Scalars are small, or at the ends of their type, or such that a product wraps; extents follow from
them, computed as native code computes them. Arrays lie in guarded memory, compact, strided, turned
round or empty with huge extents; some calls are given one element more or less than is asked for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.lib.guarded_memory import ROOM, GuardedMemory, Placed
from weft.ir.expr import IntImm, integer_range
from weft.ir.functor import collect
from weft.support.errors import TVMError
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.machine import Machine
from weft.tir.interp.state import State

_EDGES: Final = tuple(
    [sign * (1 << power) + step
     for power in (7, 8, 15, 16, 17, 30, 31, 32, 33, 61, 62, 63) for step in (-3, -1, 0, 1, 2)
     for sign in (1, -1)]
)  # fmt: skip
_POWERS: Final = (16, 16, 31, 32, 32, 33, 62)
"""Of factors whose products wrap, to 0 mostly."""
_TRIES: Final = 30
_LARGEST: Final = 1 << 48
"""The product of the extents, but for those of 0, of the arrays that numpy makes."""


@dataclass(frozen=True)
class CallArguments:
    """The arguments of one call; ``placed`` the memory of each array (None for a scalar).

    ``is_compact``: every array is in row-major order and has memory of its own.
    """

    values: list[Any]
    placed: list[Placed | None]
    is_compact: bool


class ArgumentGenerator:
    """Draws calls of a function."""

    def __init__(self, func: PrimFunc, memory: GuardedMemory, seed: int) -> None:
        self.func, self.memory = func, memory
        self.random = random.Random(seed)
        self.scalars = [param for param in func.params if param not in func.buffer_map]
        self.buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
        self.symbols = _symbols(self.buffers, self.scalars)

    def draw(self) -> CallArguments:
        """One call."""
        state, shapes = self.sizes()
        if self.random.random() < 0.08:
            spoilt = self.spoilt(shapes)
            if all(map(self.fits, spoilt, self.buffers)):
                shapes = spoilt
        self.is_compact = True
        values: list[Any] = []
        placed: list[Placed | None] = []
        position = 0
        for param in self.func.params:
            if param not in self.func.buffer_map:
                values.append(state.values[id(param)])
                placed.append(None)
                continue
            array, place = self.array(position, shapes[position], state)
            values.append(array)
            placed.append(place)
            position += 1
        if len(shapes) > 1 and self.random.random() < 0.06:
            self.share(values, placed)
        return CallArguments(values, placed, self.is_compact)

    # Numbers.

    def sizes(self) -> tuple[State, list[tuple[int, ...]]]:
        """Values of scalars and symbols with the shapes that follow: such as memory has room for,
        if some are found.
        """
        best: tuple[State, list[tuple[int, ...]]] | None = None
        for attempt in range(_TRIES):
            state = State(Machine(None))
            calm = attempt % 2 == 1
            power = self.random.choice(_POWERS) if self.random.random() < 0.2 else 0
            for var in self.scalars:
                state.values[id(var)] = self.scalar(var, calm, power)
            for var in self.symbols:
                state.values[id(var)] = self.symbol(var)
            found = self.shapes(state)
            if found is None:
                continue
            if all(map(self.fits, found, self.buffers)):
                return state, found
            best = (state, found)
        if best is None:
            return state, [tuple([1] * len(buffer.shape)) for buffer in self.buffers]
        state, found = best
        return state, [tuple([min(max(extent, 0), 4) for extent in shape]) for shape in found]

    def scalar(self, var: Var, calm: bool, power: int = 0) -> Any:
        """A number of a type; with a power, mostly that power of two."""
        if var.dtype.is_float:
            return self.random.choice((0.0, 1.5, -2.0, 1e30))
        if var.dtype.is_bool:
            return self.random.random() < 0.5
        low, high = integer_range(var.dtype)
        style = self.random.random()
        if power and style < 0.9 and 1 << power <= high:
            return 1 << power
        if calm or style < 0.5:
            value = self.random.choice((0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, -1, -3))
        elif style < 0.9:
            value = self.random.choice([edge for edge in _EDGES if low <= edge <= high])
        else:
            value = self.random.randint(low, high)
        return min(max(value, low), high)

    def symbol(self, var: Var) -> int:
        """An extent or a stride; rarely huge, for arrays without elements."""
        if self.random.random() < 0.03:
            return self.random.choice(((1 << 31) - 1, (1 << 31) - 70000, 1 << 31, 1 << 16, 1 << 40))
        return self.random.choice((0, 1, 1, 2, 3, 3, 4, 5, 6, 8, 9))

    def shapes(self, state: State) -> list[tuple[int, ...]] | None:
        """The shape of every buffer; None where one cannot be computed."""
        try:
            with np.errstate(all="ignore"):
                return [
                    tuple([int(state.evaluate(extent)) for extent in buffer.shape])
                    for buffer in self.buffers
                ]
        except TVMError:
            return None

    def fits(self, shape: tuple[int, ...], buffer: Buffer) -> bool:
        """Whether there is room for an array of a shape."""
        if min(shape, default=1) < 0:
            return False
        count, area = 1, 1
        for extent in shape:
            count, area = count * extent, area * max(extent, 1)
        return count * _itemsize(buffer) <= ROOM // 2 and area < _LARGEST

    def spoilt(self, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Shapes of which one has an element more or less along an axis, or an axis more."""
        which = self.random.randrange(len(shapes))
        shape = list(shapes[which])
        if shape and self.random.random() < 0.8:
            axis = self.random.randrange(len(shape))
            shape[axis] = max(0, shape[axis] + self.random.choice((-1, 1)))
        else:
            shape.append(1)
        return [tuple(shape) if at == which else other for at, other in enumerate(shapes)]

    # Arrays.

    def array(self, slot: int, shape: tuple[int, ...], state: State) -> tuple[Any, Placed]:
        """An array of a shape in a slot, filled."""
        buffer = self.buffers[slot]
        size, strides = _itemsize(buffer), self.strides(buffer, shape, state)
        ways = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
        low, high = sum([min(way, 0) for way in ways]), sum([max(way, 0) for way in ways]) + 1
        if 0 in shape:
            strides, low, high = _compact(shape), 0, 0
        if (high - low) * size > ROOM:
            strides, low, high = _compact(shape), 0, int(np.prod(shape))
        if tuple(strides) != _compact(shape):
            self.is_compact = False
        at_end = self.random.random() < 0.6
        placed = self.memory.place(slot, (high - low) * size, at_end)
        self.fill(self.memory.bytes(placed), buffer)
        steps = tuple([stride * size for stride in strides])
        found = self.memory.array(placed, shape, buffer.dtype.element.numpy, steps, -low * size)
        return found, placed

    def strides(self, buffer: Buffer, shape: tuple[int, ...], state: State) -> tuple[int, ...]:
        """Strides in elements: what the buffer says, or anything where it leaves them open."""
        compact = _compact(shape)
        pick = self.random
        if not buffer.strides or len(shape) != len(buffer.strides):
            loose = pick.random() < 0.03
            return tuple([2 * stride for stride in compact]) if loose else compact
        if all(isinstance(stride, Var) for stride in buffer.strides):
            style = pick.random()
            if style < 0.4:
                return compact
            order = list(range(len(shape)))
            pick.shuffle(order)
            found, step = [0] * len(shape), pick.choice((1, 1, 2, 3))
            for axis in order:
                found[axis], step = step * pick.choice((1, 1, 1, -1)), step * max(shape[axis], 1)
            if style < 0.5:
                found[pick.randrange(len(found))] = 0
            return tuple(found)
        try:
            given = tuple([int(state.evaluate(stride)) for stride in buffer.strides])
        except TVMError:
            return compact
        return given if all(abs(stride) < 1 << 40 for stride in given) else compact

    def fill(self, memory: np.ndarray[Any, Any], buffer: Buffer) -> None:
        """Values: small ones mostly, which are places in other buffers."""
        kind = buffer.dtype.element.numpy
        view = memory.view(kind)
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        values = generator.integers(0, 9, view.shape)
        if buffer.dtype.is_bool:
            view[...] = values > 4
            return
        view[...] = values.astype(kind)
        if buffer.dtype.is_integral and self.random.random() < 0.4:
            low, high = integer_range(buffer.dtype)
            odd = [edge for edge in (*_EDGES, -1, -2, 12, 100) if low <= edge <= high]
            spots = generator.random(view.shape) < 0.1
            view[spots] = np.array(self.random.choice(odd), kind)

    def share(self, values: list[Any], placed: list[Placed | None]) -> None:
        """Give one array twice, where types allow it."""
        arrays = [at for at, value in enumerate(values) if isinstance(value, np.ndarray)]
        one, other = self.random.sample(arrays, 2)
        same = values[one].dtype == values[other].dtype and values[one].shape == values[other].shape
        if same and values[one].strides == values[other].strides:
            values[other], placed[other] = values[one], placed[one]
            self.is_compact = False


def _symbols(buffers: list[Buffer], scalars: list[Var]) -> list[Var]:
    known = {id(var) for var in scalars}
    found = []
    for buffer in buffers:
        for term in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            for var in collect(term, Var) if not isinstance(term, IntImm) else ():
                if id(var) not in known:
                    known.add(id(var))
                    found.append(var)
    return found


def _itemsize(buffer: Buffer) -> int:
    return int(np.dtype(buffer.dtype.element.numpy).itemsize)


def _compact(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1) if step < 1 << 40 else 1
    return tuple(strides[::-1])
