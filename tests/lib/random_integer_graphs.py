"""Random graphs of integer layers, compiled for this machine and for AVX2, beside integer numpy.

A graph has one to five layers of ``integer_layers`` and ``integer_moves``, with weights and data
that reach the ends of their types. Its first axis may be symbolic: it then runs at five sizes, 0
and 1 among them. ``problem_of`` says what a compiled graph gets wrong, ``report`` writes the
smallest graph that shows it as a program.

Where numpy is not sure of an intermediate result (a tie is within the error of a sum of floats),
the graph returns every value, and each layer is checked given what the layers before it gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

import weft
from tests.lib.integer_layers import Answer, Emit, Layer, Setting
from tests.lib.integer_numbers import Array, Coding, drawn
from weft.ir.module import IRModule
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Tuple, Var
from weft.relax.struct_info import TensorStructInfo
from weft.target.machine import machine_of
from weft.tir.expr import Var as SizeVar

TARGETS: Final = ("llvm -num-cores=2", "llvm -mcpu=haswell -num-cores=2")
SHOWN: Final = 4
"""How many wrong elements a problem names."""
_WRITTEN: Final = {
    "tests.lib.integer_layers": "Convolution Product Tail",
    "tests.lib.integer_moves": "Combine Join Largest Limit Mean Move",
    "tests.lib.integer_numbers": "Coding Weights Window",
    "tests.lib.random_integer_graphs": "Graph Input Run Step problem_of",
}
Shape = tuple[int | str, ...]
"""Extents; ``"n"`` is the symbolic one."""


@dataclass(frozen=True)
class Input:
    """A tensor of integers."""

    name: str
    shape: Shape
    coding: Coding
    is_zero_given: bool = False
    """Whether its zero point is an argument of the call, too, as where each call chooses one."""


@dataclass(frozen=True)
class Step:
    """A layer under a name, the shape of its result, and the coding of that (None: it has none)."""

    name: str
    layer: Layer
    shape: Shape
    coding: Coding | None


@dataclass(frozen=True)
class Run:
    """A size, and how the data of the call is drawn."""

    n: int
    fill: str
    seed: int


@dataclass(frozen=True)
class Graph:
    """Inputs, layers, calls."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    runs: tuple[Run, ...]
    is_power: bool
    """Whether all scales are powers of two."""
    returns_all: bool = False

    @property
    def codings(self) -> dict[str, Coding]:
        """The coding of each value that a layer can read."""
        given = {item.name: item.coding for item in self.inputs}
        computed = {step.name: step.coding for step in self.steps if step.coding is not None}
        return {**given, **computed}

    @property
    def results(self) -> tuple[Step, ...]:
        """What it returns: all values, or those that no layer reads."""
        read = {source for step in self.steps for source in step.layer.sources}
        return tuple(step for step in self.steps if self.returns_all or step.name not in read)


def module_of(graph: Graph) -> IRModule:
    """The graph as a module whose ``main`` returns its results."""
    builder, n = BlockBuilder(), SizeVar("n", "int64")
    values: dict[str, Any] = {}
    for item in graph.inputs:
        dims = [n if extent == "n" else extent for extent in item.shape]
        values[item.name] = Var(item.name, TensorStructInfo(dims, item.coding.dtype))
    given = [item for item in graph.inputs if item.is_zero_given]
    zeros = {
        item.name: Var(f"{item.name}_zero", TensorStructInfo([], item.coding.dtype))
        for item in given
    }
    codings, results = graph.codings, {step.name for step in graph.results}
    bind = Emit(builder.emit, zeros)
    with builder.function("main", [*values.values(), *zeros.values()]):
        with builder.dataflow():
            for step in graph.steps:
                sources = step.layer.sources
                call = step.layer.emit(
                    bind,
                    [values[name] for name in sources],
                    [codings[name] for name in sources],
                )
                emit = builder.emit_output if step.name in results else builder.emit
                values[step.name] = emit(call)
            outputs = [values[step.name] for step in graph.results]
            whole = builder.emit_output(Tuple(outputs))
        builder.emit_func_output(whole)
    return builder.get()


def data_of(graph: Graph, run: Run) -> dict[str, Array]:
    """The arguments of a call."""
    generator = np.random.default_rng(run.seed)
    arrays = {}
    for item in graph.inputs:
        shape = [run.n if extent == "n" else int(extent) for extent in item.shape]
        arrays[item.name] = drawn(item.coding, shape, run.fill, generator)
    for item in graph.inputs:
        if item.is_zero_given:
            arrays[f"{item.name}_zero"] = np.array(item.coding.zero, item.coding.dtype)
    return arrays


def answers_of(
    graph: Graph, setting: Setting, arrays: dict[str, Array], given: Mapping[str, Array]
) -> Iterator[tuple[Step, Answer]]:
    """What numpy says of each layer, which reads what is ``given``, or else numpy's results."""
    codings = graph.codings
    values = dict(arrays)
    for step in graph.steps:
        sources = step.layer.sources
        inputs = [values[name] for name in sources]
        answer = step.layer.answer(inputs, [codings[name] for name in sources], setting)
        values[step.name] = given.get(step.name, answer.low)
        yield step, answer


def as_sure(graph: Graph, setting: Setting) -> Graph:
    """The graph, which returns every value if numpy is not sure of one that others read."""
    read = {source for step in graph.steps for source in step.layer.sources}
    for run in graph.runs:
        for step, answer in answers_of(graph, setting, data_of(graph, run), {}):
            if step.name in read and not answer.is_sure:
                return replace(graph, returns_all=True)
    return graph


def setting_of(graph: Graph, target: str) -> Setting:
    """What the bounds of errors depend on."""
    return Setting(graph.is_power, machine_of(target).multiplies_bytes)


def problem_of(
    graph: Graph, targets: Sequence[str] = TARGETS, look: Callable[[Any], None] | None = None
) -> str | None:
    """What is wrong with the compiled graph, or None; ``look`` is shown what is compiled."""
    for target in targets:
        sure = as_sure(graph, setting_of(graph, target))
        try:
            compiled = weft.compile(module_of(sure), target=target, cache=False)
            problem = _problem_of(sure, compiled, target)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
            problem = f"{type(error).__name__}: {error}"
        if problem is not None:
            return f"{target}: {problem}"
        if look is not None:
            look(compiled)
    return None


def _problem_of(graph: Graph, compiled: Any, target: str) -> str | None:
    setting = setting_of(graph, target)
    for run in graph.runs:
        arrays = data_of(graph, run)
        results = compiled(*arrays.values())
        tensors = results if isinstance(results, tuple) else (results,)
        given = {
            step.name: np.asarray(tensor)
            for step, tensor in zip(graph.results, tensors, strict=True)
        }
        for step, answer in answers_of(graph, setting, arrays, given):
            difference = _difference(given[step.name], answer) if step.name in given else None
            if difference is not None:
                return f"{step.name} ({type(step.layer).__name__}): {difference}, in {run}"
    return None


def _difference(given: Array, answer: Answer) -> str | None:
    """How a result is not what numpy says, or None."""
    low, high = answer.low, answer.high
    if given.dtype != low.dtype or given.shape != low.shape:
        return f"{given.dtype}{given.shape}, expected {low.dtype}{low.shape}"
    if low.dtype.kind in "iu" and np.any(high.astype("int64") - low > 1):
        return "the oracle is not sure of one quantum: its bound is too wide"
    wrong = ~((low <= given) & (given <= high))
    if not wrong.any():
        return None
    places = [tuple(int(axis) for axis in place) for place in np.argwhere(wrong)[:SHOWN]]
    shown = [f"{place}: {given[place]} for {low[place]} to {high[place]}" for place in places]
    return f"{int(wrong.sum())} of {wrong.size} elements differ: {'; '.join(shown)}"


def instructions_of(compiled: Any) -> set[str]:
    """The instructions for products of integers in the assembly of a compiled graph."""
    return set(re.findall("vpdpbusd|vpdpwssd|vpmaddwd", compiled.get_source("asm")))


# Failures


def shrunk(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """A graph with as few layers and calls as still fail."""
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for smaller in _smaller(graph):
            if smaller.steps and fails(smaller):
                graph, is_smaller = smaller, True
                break
    return graph


def _smaller(graph: Graph) -> Iterator[Graph]:
    for index in range(len(graph.runs)):
        if len(graph.runs) > 1:
            yield replace(graph, runs=(graph.runs[index],))
    for step in graph.steps:
        yield _without(graph, step.name)
        if step.coding is not None:
            yield _given(graph, step)


def _without(graph: Graph, name: str) -> Graph:
    """The graph without a layer and those that read it."""
    gone, kept = {name}, []
    for step in graph.steps:
        if step.name in gone or gone & {*step.layer.sources}:
            gone.add(step.name)
        else:
            kept.append(step)
    return _with_steps(graph, graph.inputs, kept)


def _given(graph: Graph, step: Step) -> Graph:
    """The graph with an input in the place of a layer."""
    assert step.coding is not None
    inputs = (*graph.inputs, Input(step.name, step.shape, step.coding))
    return _with_steps(graph, inputs, [other for other in graph.steps if other is not step])


def _with_steps(graph: Graph, inputs: Sequence[Input], steps: Sequence[Step]) -> Graph:
    read = {source for step in steps for source in step.layer.sources}
    used = tuple(item for item in inputs if item.name in read)
    return replace(graph, inputs=used, steps=tuple(steps))


def script(graph: Graph, problem: str) -> str:
    """A program that shows the problem."""
    quoted = "\n".join([f"# {line}" for line in problem.splitlines()[:10]])
    needed = "\n".join(
        [f"from {module} import {', '.join(names.split())}" for module, names in _WRITTEN.items()]
    )
    return (
        f"{quoted}\n{needed}\n\n"
        f"graph = {graph!r}\n"
        "problem = problem_of(graph)\n"
        "assert problem is None, problem\n"
    )


def report(graph: Graph, look: Callable[[Any], None] | None = None) -> str | None:
    """The program of the smallest graph that fails as this one does; None if it is right."""
    problem = problem_of(graph, look=look)
    if problem is None:
        return None
    target = problem.partition(":")[0]
    small = shrunk(graph, lambda other: problem_of(other, [target]) is not None)
    return script(small, problem_of(small, [target]) or problem)
