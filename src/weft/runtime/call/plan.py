"""CallPlan: the calling contract of one compiled function, step by step, as plain data.

A plan says what a caller does: which arguments there are, which axis gives a symbol its value, what
is compared with what and in which order, which arguments may share no memory, what is allocated, in
which order the native function takes its arguments, and what the result is made of. ``plan_of``
reads it from a ``FunctionSpec``, ``plan_of_entry`` from the ``NativeEntry`` of a whole model.

Nothing is decided after it: three printers write a plan down. Python functions are printed by
``weft.runtime.call.wrapper`` and ``native_entry``, C by ``weft.runtime.export.library_source``, and
the table that native code reads by ``weft.runtime.call.tensor_call``. docs/design/0018-calls.md
shows one plan and what each printer does with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.extent import Extent, evaluate, names_in
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes, Result
from weft.support.errors import IRValueError, UnsupportedError
from weft.support.lazy_property import lazy_property

Path = tuple[int, ...]
"""Where a value stands in nested arguments: ``(1, 0)`` is the first item of the second argument."""


@dataclass(frozen=True)
class Count:
    """The call has so many arguments."""

    number: int


@dataclass(frozen=True)
class Open:
    """A tuple among the arguments; ``path`` is ``()`` for the tuple of all arguments.

    ``items`` has the number of the argument that stands at each place. Where it is None, the item
    is opened or compared by a later step, which names it by its path.
    """

    path: Path
    items: tuple[int | None, ...]


@dataclass(frozen=True)
class Take:
    """An argument: its kind, data type, device, memory. ``place`` is what messages call it."""

    argument: int
    param: ParamSpec
    place: str


@dataclass(frozen=True)
class Rank:
    """The number of axes of an argument, before one of them is read by its number."""

    argument: int
    rank: int


@dataclass(frozen=True)
class Bind:
    """A symbol gets its value from an argument: a number, or an entry of shape or strides.

    The value of an ``offset`` is 0, since arguments arrive as the address of their first element.
    """

    symbol: str
    argument: int
    of: Literal["value", "shape", "strides", "offset"]
    axis: int = 0


@dataclass(frozen=True)
class Compare:
    """The shape of an argument, and its strides in elements, unless these are None (compact).

    The stride of an axis of extent 1 or less means nothing and is not compared.
    """

    argument: int
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...] | None = None


@dataclass(frozen=True)
class Overlap:
    """Two arguments share no memory, as the code was compiled to expect; it writes ``output``."""

    output: int
    other: int


@dataclass(frozen=True)
class Same:
    """A number inside of a shape argument is equal to an extent."""

    path: Path
    extent: Extent


@dataclass(frozen=True)
class Cast:
    """A match_cast: ``actual`` is equal to ``resolved``; both are extents over bound symbols.

    Messages show ``wanted``, the extents as they are written, and the values of symbols in them,
    ``known``, as pairs of name and extent. ``kind`` is ``shape`` or ``prim``, a single number.
    """

    kind: str
    what: str
    wanted: tuple[Extent, ...]
    resolved: tuple[Extent, ...]
    actual: tuple[Extent, ...]
    known: tuple[tuple[str, Extent], ...]


@dataclass(frozen=True)
class Limit:
    """A symbol is at most so large, since memory was planned for that."""

    symbol: str
    most: int


Check = Count | Open | Take | Rank | Bind | Compare | Overlap | Same | Cast | Limit
"""One step before the native call."""


@dataclass(frozen=True)
class Output:
    """Fresh compact memory that the native function fills."""

    dtype: str
    shape: tuple[Extent, ...]


@dataclass(frozen=True)
class Arena:
    """Working memory of a call: ``size`` bytes, or what ``planned`` needs for these symbols.

    Where the code ``loops``, a tensor in it changes after a callback that got it has returned.
    """

    size: int
    planned: PlannedSizes | None = None
    loops: bool = False


PassKind = Literal[
    "argument", "output", "arena", "offsets", "constants", "stack", "symbol", "result"
]


@dataclass(frozen=True)
class Pass:
    """One argument of the native function.

    ``argument`` and ``output`` have an ``index``, ``symbol`` has its name. ``arena`` is the address
    of working memory, ``offsets`` of the table of what stands where in it, ``constants`` of the
    table of the constants' addresses; ``stack`` is the lowest address that the stack may reach,
    ``result`` the memory for a returned number.
    """

    kind: PassKind
    index: int = 0
    symbol: str = ""


@dataclass(frozen=True)
class CallPlan:
    """What a caller of one compiled function does; see the module's text.

    ``checks`` are in order; each symbol is bound once, before it is used. ``passed`` are the native
    arguments, in order. ``result`` is a tree: what ``NativeEntry.result`` may be, for a function
    of a library ``("nothing", None)`` or ``("number", dtype)``. ``calls_packed`` tells that the
    code may hand the memory of this call to Python functions.
    """

    name: str
    native_symbol: str
    checks: tuple[Check, ...]
    passed: tuple[Pass, ...]
    result: Result
    outputs: tuple[Output, ...] = ()
    arena: Arena | None = None
    constants: tuple[int, ...] = ()
    calls_packed: bool = False

    def __post_init__(self) -> None:
        """Refuse a symbol that is used and that no argument gives a value."""
        known = set(self.symbols)
        for symbol in self._used():
            if symbol not in known:
                raise IRValueError(
                    f"{self.name}: expected the arguments to give every symbol its value, found "
                    f"none that has {symbol} as an extent or as a number"
                )

    @lazy_property
    def takes(self) -> tuple[Take, ...]:
        """The arguments."""
        return tuple([step for step in self.checks if isinstance(step, Take)])

    @lazy_property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that arguments bind, in order."""
        return tuple([step.symbol for step in self.checks if isinstance(step, Bind)])

    def symbols_from_shapes(self) -> tuple[tuple[str, int, int], ...] | None:
        """Each symbol, and which axis of which argument binds it; None where others bind one."""
        binds = [step for step in self.checks if isinstance(step, Bind)]
        if any(step.of != "shape" for step in binds):
            return None
        return tuple([(step.symbol, step.argument, step.axis) for step in binds])

    def for_extents(self, values: Mapping[str, int]) -> CallPlan | None:
        """The plan of calls in which the symbols have these values: all its shapes are numbers.

        None where such a call fails a check of extents. Sizes of working memory and symbols that
        are passed stay as they are.
        """
        checks: list[Check] = []
        for step in self.checks:
            match step:
                case Take():
                    shape = _numbers(step.param.shape, values)
                    checks.append(replace(step, param=replace(step.param, shape=shape)))
                case Compare() if step.strides is None:
                    checks.append(replace(step, shape=_numbers(step.shape, values)))
                case Limit():
                    if values[step.symbol] > step.most:
                        return None
                case Cast():
                    if _numbers(step.actual, values) != _numbers(step.resolved, values):
                        return None
                case _:
                    checks.append(step)
        outputs = [Output(item.dtype, _numbers(item.shape, values)) for item in self.outputs]
        return replace(self, checks=tuple(checks), outputs=tuple(outputs))

    def place(self, argument: int) -> str:
        """What messages call an argument: ``f: argument 1 (x)``."""
        take = self.takes[argument]
        return f"{self.name}: {take.place} ({take.param.name})"

    def _used(self) -> Iterator[str]:
        yield from [item.symbol for item in self.passed if item.kind == "symbol"]
        for step in self.checks:
            if isinstance(step, Compare):
                yield from _names((*step.shape, *(step.strides or ())))
            elif isinstance(step, Same):
                yield from _names((step.extent,))
            elif isinstance(step, Cast):
                values = [value for _, value in step.known]
                yield from _names((*step.resolved, *step.actual, *values))
            elif isinstance(step, Limit):
                yield step.symbol
        for output in self.outputs:
            yield from _names(output.shape)
        if self.arena is not None and self.arena.planned is not None:
            yield from self.arena.planned.symbols


def _numbers(extents: tuple[Extent, ...], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([evaluate(extent, values) for extent in extents])


def _names(extents: tuple[Extent, ...]) -> Iterator[str]:
    for extent in extents:
        if not isinstance(extent, int):
            yield from sorted(names_in(extent))


def plan_of(spec: FunctionSpec) -> CallPlan:
    """The plan of a function of a library, which the caller gives all declared parameters."""
    passed = [Pass("argument", index) for index in range(len(spec.params))]
    passed += [Pass("symbol", symbol=name) for name in spec.implicit]
    if spec.ret is not None:
        passed.append(Pass("result"))
    return CallPlan(
        spec.name,
        spec.native_symbol,
        (Count(len(spec.params)), *_argument_checks(spec.name, spec.params, {})),
        tuple(passed),
        ("nothing", None) if spec.ret is None else ("number", spec.ret),
        calls_packed=spec.calls_packed,
    )


def plan_of_entry(entry: NativeEntry) -> CallPlan:
    """The plan of a whole model: its caller gives inputs; outputs and memory come with the call."""
    spec, outputs = entry.spec, len(entry.outputs)
    handles: list[Pass] = []
    if entry.arena != 0 or entry.planned is not None:
        handles.append(Pass("arena"))
    if entry.planned is not None:
        handles.append(Pass("offsets"))
    if entry.constants or entry.recursive:
        handles.append(Pass("constants"))
    if entry.recursive:
        handles.append(Pass("stack"))
    inputs = len(spec.params) - outputs - len(handles)
    opened, places, same = _opened(entry.layout)
    return CallPlan(
        spec.name,
        spec.native_symbol,
        (
            *([Count(inputs)] if entry.layout is None else opened),
            *_argument_checks(spec.name, spec.params[:inputs], places),
            *same,
            *[Cast(*check) for check in entry.checks],
            *[Limit(*limit) for limit in entry.limits],
        ),
        (
            *[Pass("argument", index) for index in range(inputs)],
            *[Pass("output", index) for index in range(outputs)],
            *handles,
            *[Pass("symbol", symbol=name) for name in spec.implicit],
        ),
        entry.result,
        tuple([Output(*output) for output in entry.outputs]),
        Arena(entry.arena, entry.planned, entry.loops) if Pass("arena") in handles else None,
        entry.constants,
        spec.calls_packed,
    )


def _opened(layout: tuple[Result, ...] | None) -> tuple[list[Open], dict[int, str], list[Same]]:
    """How nested arguments are opened, the outer first; the places of the inputs in them."""
    opened: list[Open] = []
    places: dict[int, str] = {}
    same: list[Same] = []
    todo: list[tuple[Path, str, tuple[Result, ...]]] = []
    if layout is not None:
        todo.append(((), "", layout))
    while todo:
        path, where, layouts = todo.pop(0)
        items: list[int | None] = []
        for index, (kind, content) in enumerate(layouts):
            place = f"{where}[{index}]" if where else f"argument {index}"
            items.append(content if kind == "leaf" else None)
            if kind == "leaf":
                places[content] = place
            elif kind == "tuple":
                todo.append(((*path, index), place, content))
            else:
                same.append(Same((*path, index), content))
        opened.append(Open(path, tuple(items)))
    return opened, places, same


def _argument_checks(
    name: str, params: tuple[ParamSpec, ...], places: dict[int, str]
) -> Iterator[Check]:
    """All are taken; then symbols are bound; then shapes are compared; then memory."""
    bound: set[str] = set()
    for index, param in enumerate(params):
        yield Take(index, param, places.get(index, f"argument {index}"))
        if param.kind == "scalar" and param.name not in bound:
            bound.add(param.name)
            yield Bind(param.name, index, "value")
    buffers = [(index, param) for index, param in enumerate(params) if param.kind == "buffer"]
    for index, param in buffers:
        if param.strides is not None or any(isinstance(extent, str) for extent in param.shape):
            yield Rank(index, len(param.shape))
        yield from _bindings(name, index, param, bound)
    for index, param in buffers:
        yield Compare(index, param.shape, param.strides)
    written = [index for index, param in buffers if param.noalias and param.is_output is not False]
    for output in written:
        for other, _ in buffers:
            if other != output and not (other in written and other < output):
                yield Overlap(output, other)


def _bindings(name: str, argument: int, param: ParamSpec, bound: set[str]) -> Iterator[Bind]:
    """What a buffer binds: the bare names in it that nothing bound before."""
    for axis, extent in enumerate(param.shape):
        if _is_new(extent, bound):
            yield Bind(str(extent), argument, "shape", axis)
    for axis, stride in enumerate(param.strides or ()):
        if _is_new(stride, bound):
            yield Bind(str(stride), argument, "strides", axis)
    offset = param.elem_offset
    if _is_new(offset, bound):
        yield Bind(str(offset), argument, "offset")
    elif offset != 0 and not isinstance(offset, str):
        raise UnsupportedError(
            f"{name}: parameter {param.name}: expected element offset 0 or a symbol, got {offset}"
        )


def _is_new(extent: Extent, bound: set[str]) -> bool:
    """Whether an extent is the name of a symbol that has no value yet; it has one from now on."""
    if not isinstance(extent, str) or not extent.isidentifier() or extent in bound:
        return False
    bound.add(extent)
    return True
