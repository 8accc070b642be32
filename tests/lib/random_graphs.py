"""Random graphs: valid programs over all operators, and what must hold of each (NNSmith's idea).

Liu et al., "NNSmith: Generating Diverse and Valid Test Cases for Deep Learning Compilers" (2023):
a graph grows by operators whose arguments are taken from what it has so far. Here a graph is a list
of input declarations and of calls as text, so that a failing one can be made again without some of
its calls: ``shrunk`` makes it short, ``script`` writes it down as a program.

``problem_of`` compares, on one set of inputs, the numpy reference (the Relax interpreter on the
graph as it is) with the interpreter after each pass alone, and with native code and bytecode at
``opt_level`` 0 and 3. See tests.lib.graph_pool for what makes floats comparable.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from tests.lib import graph_forms
from tests.lib.graph_forms import FORMS
from tests.lib.graph_pool import Pool, Value, is_exact
from tests.lib.graph_recipes import DTYPES, RECIPES
from weft.driver.build import relax_build
from weft.driver.pipeline import RELAX_BUILD, get_pipeline
from weft.ir.expr import GlobalVar
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal
from weft.ir.transform import PassContext
from weft.relax import op, transform
from weft.relax.analysis.variables import all_vars
from weft.relax.analysis.well_formed import well_formed
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Function, MatchCast, SeqExpr, Tuple, Var, VarBinding, const
from weft.relax.reference.frame import Frame
from weft.relax.reference.interpreter import Interpreter, run
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo
from weft.runtime.device import cpu
from weft.runtime.ndarray import array as ndarray
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.script.parser.entry import from_source
from weft.support.dtype import DataType
from weft.support.errors import InternalError, IRTypeError, TVMError
from weft.tir.expr import Var as SizeVar

LARGEST: Final = 64
"""Tensors of random graphs have at most that many elements."""
TOLERANCE: Final = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2}
"""By dtype, relative to the largest magnitude that went into a result."""
FORM_SHARE: Final = 0.12
"""How many of the steps are calls of private functions, branches and match_casts."""


ROUNDED: Final = frozenset({"hamming_window"})
"""Operators whose results are never exact, even where the reference's happen to be eighths."""


@dataclass(frozen=True)
class Given:
    """An input: its dimensions as text over ``n`` and ``m``, its dtype, the seed of its data."""

    name: str
    dims: tuple[str, ...]
    dtype: str
    seed: int


@dataclass(frozen=True)
class Step:
    """One call: the variable, the operator's name, the call as text."""

    name: str
    operator: str
    text: str


@dataclass(frozen=True)
class Graph:
    """Values of the symbols, inputs, calls."""

    n: int
    m: int
    inputs: tuple[Given, ...]
    steps: tuple[Step, ...]


class Builder:
    """Builds a graph call by call, and computes each value with its reference."""

    def __init__(self, graph: Graph) -> None:
        self.symbols = {"n": SizeVar("n", "int64"), "m": SizeVar("m", "int64")}
        self.builder = BlockBuilder()
        self.names: dict[str, Any] = {
            "op": op, "const": const, "np": np, "dims": graph_forms.dims, "call": self.call,
            "recast": self.recast, "forget": self.forget, **self.symbols,
        }  # fmt: skip
        self.frame = Frame("main")
        self.interpreter = Interpreter(IRModule())
        sizes = {"n": graph.n, "m": graph.m}
        for name, symbol in self.symbols.items():
            self.frame.state.values[id(symbol)] = sizes[name]
        symbols = ShapeStructInfo(list(self.symbols.values()))
        self.params = [Var("sizes", symbols)]  # some extent may say n + 1 and none n
        self.values: dict[str, Value] = {}
        for given in graph.inputs:
            self.input(given, sizes)
        self.builder.begin_scope(self.params)
        self.builder.begin_dataflow_block()

    def module(self, results: Sequence[str]) -> IRModule:
        """The module whose ``main`` returns these values."""
        outputs = [self.builder.emit_output(self.names[name]) for name in results]
        body = SeqExpr([self.builder.end_block()], Tuple(outputs))
        self.builder.end_scope()
        func = Function(self.params, body, attrs={"global_symbol": "main"})
        made = BlockBuilder().normalize(func)
        return IRModule({GlobalVar("main"): made, **self.builder.get().functions})

    def input(self, given: Given, sizes: dict[str, int]) -> None:
        """Declare an input."""
        dims = [eval(text, {}, self.symbols) for text in given.dims]  # noqa: S307 - our own text
        var = Var(given.name, TensorStructInfo(dims, given.dtype))
        data = input_data(given, sizes)
        self.params.append(var)
        self.names[given.name] = var
        self.frame.values[var] = data
        self.values[given.name] = Value(given.name, data, True, _largest(data))

    def step(self, step: Step) -> Value:
        """Emit a call and compute it; raises what the operator or its reference raises."""
        call = eval(step.text, self.names)  # noqa: S307 - our own text
        var = self.builder.emit(call, step.name)
        self.compute(var)
        made = self.frame.values[var]
        if isinstance(made, tuple):
            raise IRTypeError(f"{step.text} is a tuple: take a field of it")
        used = [v for name, v in self.values.items() if _mentions(step.text, name)]
        scale = max([_largest(made), *[value.scale for value in used]], default=0.0)
        exact = is_exact(made) and all(value.exact for value in used)
        exact = exact and step.operator not in ROUNDED
        self.names[step.name] = var
        value = self.values[step.name] = Value(step.name, made, exact, scale)
        return value

    def call(self, kind: str, *arguments: Any, known: bool) -> Call:
        """The call of a private function of tests.lib.graph_forms."""
        given = [self.builder.emit(item) for item in arguments]
        func, values = graph_forms.private_call(kind, given, known)
        gvar = self.builder.add_func(func, kind.replace(" ", "_"))
        self.interpreter = Interpreter(self.builder.get())
        return Call(gvar, values)

    def recast(self, x: Var) -> Var:
        """``x`` by a match_cast that gives every extent a new symbol."""
        return self._match_cast(x, graph_forms.recast_info(x, f"{x.name_hint}_s"))

    def forget(self, x: Var) -> Var:
        """``x`` by a match_cast that leaves its shape unknown."""
        return self._match_cast(x, graph_forms.forget_info(x))

    def _match_cast(self, x: Var, info: TensorStructInfo) -> Var:
        var = self.builder.match_cast(x, info)
        self.interpreter.bind(MatchCast(var, x, info), self.frame)
        return var

    def compute(self, var: Var) -> None:
        """Compute a variable, after those that normalisation has put before it."""
        value = self.builder.lookup_binding(var)
        assert value is not None
        for used in all_vars(value):
            if used not in self.frame.values:
                self.compute(used)
        self.interpreter.bind(VarBinding(var, value), self.frame)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def _largest(array: Any) -> float:
    """The largest finite magnitude."""
    wide = np.abs(np.asarray(array).astype("float64"))
    finite = wide[np.isfinite(wide)]
    return float(finite.max()) if finite.size else 0.0


def input_data(given: Given, sizes: dict[str, int]) -> Any:
    """The data of an input: halves of small magnitude, small integers, booleans."""
    shape = [eval(text, {}, dict(sizes)) for text in given.dims]  # noqa: S307 - our own text
    generator = np.random.default_rng(given.seed)
    kind = DataType(given.dtype)
    if kind.is_bool:
        return np.asarray(generator.integers(0, 2, shape), bool)
    if kind.is_float:
        return np.asarray(generator.integers(-6, 7, shape) / 2, given.dtype)
    low = 0 if given.dtype.startswith("uint") else -4
    return np.asarray(generator.integers(low, 6, shape), given.dtype)


# Making graphs


def random_graph(seed: int) -> Graph:
    """A graph of one to five inputs and up to ten calls."""
    r = random.Random(seed)
    inputs = []
    n, m = r.choice((0, 1, 2, 3, 4)), r.choice((1, 1, 2, 3))
    for index in range(r.randint(1, 5)):
        dims: list[str] = []
        for _ in range(r.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5))):
            dims.append(r.choice(("n", "m", "n + 1", "n * 2", "n // 2", *"111222334", "0")))
        sizes = [eval(text, {}, {"n": n, "m": m}) for text in dims]  # noqa: S307 - our own text
        if np.prod(sizes) > LARGEST:
            dims = dims[:1]
        dtype = r.choice((*DTYPES, "float32", "float32", "float32", "float32"))
        inputs.append(Given(f"x{index}", tuple(dims), dtype, r.randrange(1 << 30)))
    graph = Graph(n, m, tuple(inputs), ())
    builder = Builder(graph)
    pool = Pool(r)
    pool.values.extend(builder.values.values())
    steps: list[Step] = []
    for _ in range(60):
        if len(steps) >= r.randint(2, 10):
            break
        step = _next_step(r, pool, len(steps))
        value = None if step is None else _tried(graph, steps, step)
        if step is not None and value is not None:
            steps.append(step)
            pool.values.append(value)
    return replace(graph, steps=tuple(steps))


def _next_step(r: random.Random, pool: Pool, index: int) -> Step | None:
    table = FORMS if r.random() < FORM_SHARE else RECIPES
    operator = r.choice(tuple(table))
    text = table[operator](pool)
    return None if text is None else Step(f"v{index}", operator, text)


def _tried(graph: Graph, steps: Sequence[Step], step: Step) -> Value | None:
    """The value of one more step; None if the operator refuses it or it grows too large."""
    builder = Builder(graph)
    for known in steps:
        builder.step(known)
    try:
        value = builder.step(step)
    except InternalError:
        raise
    except (TVMError, ValueError, IndexError, ArithmeticError):
        return None  # refused, or without a meaning, as argmax of nothing
    return value if value.array.size <= LARGEST else None


def build(graph: Graph) -> tuple[IRModule, dict[str, Value]]:
    """The module of a graph, whose result is a tuple of every value that no other call uses."""
    made = Builder(graph)
    for step in graph.steps:
        made.step(step)
    names = [step.name for step in graph.steps if _is_result(graph, step.name)]
    return made.module(names), {name: made.values[name] for name in names}


def _is_result(graph: Graph, name: str) -> bool:
    return not any(_mentions(step.text, name) for step in graph.steps)


# What must hold

ALONE: Final = (
    "Normalize", "CanonicalizeBindings", "EliminateCommonSubexpr", "FoldConstant",
    "DecomposeOpsForInference", "RemoveRedundantReshape", "TopologicalSort", "ConvertToDataflow",
    "CombineParallelMatmul", "LambdaLift", "DataflowUseInplaceCalls", "DeadCodeElimination",
    "RemoveUnusedOutputs", "RemoveUnusedParameters", "NormalizeGlobalVar", "ToNonDataflow",
    "InlinePrivateFunctions", "ExpandTupleArguments", "ComputePrimValue", "AttachGlobalSymbol",
    "ExpandMatmulOfSum", "ReorderPermuteDimsAfterConcat", "ReorderTakeAfterMatmul",
)  # fmt: skip
"""Passes over operators, each applied to the graph as it is."""

COMPILED: Final = (
    (0, "native", "default"), (3, "native", "unscheduled"), (3, "native", "weft"),
    (3, "bytecode", "default"),
)  # fmt: skip
"""How the graph is compiled: opt_level, mode, pipeline.

``unscheduled`` fuses, ``weft`` schedules too, ``default`` does neither.
"""


def chains() -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Passes that need each other's forms: checked after every step."""
    yield "weft", get_pipeline("weft").passes
    lowered = [*RELAX_BUILD]
    planned = next(i for i, item in enumerate(lowered) if "StaticPlan" in item.info.name) + 1
    yield "default_build", (*lowered[:planned], transform.AssignOffsets(), *lowered[planned:])


def problem_of(graph: Graph) -> str | None:
    """What is wrong with the compiler on this graph, or None."""
    mod, expected = build(graph)
    sizes = {"n": graph.n, "m": graph.m}
    inputs = [(graph.n, graph.m), *[input_data(given, sizes) for given in graph.inputs]]
    results = list(expected.values())
    for what, check in _checks(mod, inputs):
        try:
            found = check()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
            return f"{what}: {type(error).__name__}: {error}"
        difference = _difference(found, results)
        if difference is not None:
            return f"{what}: {difference}"
    return None


def _checks(
    mod: IRModule, inputs: Sequence[Any]
) -> Iterator[tuple[str, Callable[[], Sequence[Any]]]]:
    """(what, how to get the results), the cheap ones first."""
    yield "text round trip", lambda: _interpreted(_parsed(mod), inputs)
    for name in ALONE:
        if name in transform.__all__:
            yield name, partial(_stepped, [mod], getattr(transform, name)(), inputs)
    for name, steps in chains():
        state = [mod]
        for step in steps:
            yield f"{name}: {step.info.name}", partial(_stepped, state, step, inputs)
        if name == "default_build":
            yield f"{name}, native", partial(_finished, state, inputs)
    for level, mode, pipeline in COMPILED:
        what = f"{mode} at opt_level {level}, {pipeline}"
        yield what, partial(_at_level, mod, inputs, mode, level, pipeline)


def _finished(state: list[IRModule], inputs: Sequence[Any]) -> Sequence[Any]:
    return _compiled(state[0], inputs, "native", None)


def _parsed(mod: IRModule) -> IRModule:
    again: IRModule = from_source(mod.script(show_meta=True))
    assert structural_equal(again, mod), "the text gives another module"
    return again


def _stepped(state: list[IRModule], step: Any, inputs: Sequence[Any]) -> Sequence[Any]:
    """The results after one more pass; ``state`` holds the module."""
    state[0] = step(state[0])
    assert well_formed(state[0]), "not well formed"
    return _interpreted(state[0], inputs)


def _interpreted(mod: IRModule, inputs: Sequence[Any]) -> Sequence[Any]:
    found: Sequence[Any] = run(mod, "main", *inputs)
    return found


def _at_level(
    mod: IRModule, inputs: Sequence[Any], mode: str, level: int, pipeline: str
) -> Sequence[Any]:
    with PassContext(opt_level=level):
        return _compiled(mod, inputs, mode, pipeline)


def _compiled(
    mod: IRModule, inputs: Sequence[Any], mode: str, pipeline: str | None
) -> Sequence[Any]:
    executable = relax_build(mod, "llvm", pipeline=pipeline)
    machine = VirtualMachine(executable, cpu(), exec_mode=mode)
    sizes, *tensors = inputs
    found = machine["main"](sizes, *[ndarray(item) for item in tensors])
    return [item.numpy() for item in found]


def _difference(found: Sequence[Any], expected: Sequence[Value]) -> str | None:
    """The first result that is not what the reference says, or None."""
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for made, value in zip(found, expected, strict=True):
        wanted = value.array
        if made.shape != wanted.shape or made.dtype != wanted.dtype:
            return (
                f"{value.name}: {made.dtype} of shape {made.shape}, expected {wanted.dtype} of "
                f"shape {wanted.shape}"
            )
        if not _agree(made, wanted, value):
            return f"{value.name}: got {made.tolist()}, expected {wanted.tolist()}"
    return None


def _agree(made: Any, wanted: Any, value: Value) -> bool:
    """Whether two arrays are the same up to the tolerance of the dtype."""
    tolerance = TOLERANCE.get(wanted.dtype.name)
    if tolerance is None:
        return bool(np.array_equal(made, wanted))
    one, two = made.astype("float64"), wanted.astype("float64")
    limit = tolerance * max(1.0, value.scale)
    return bool(np.allclose(one, two, rtol=tolerance, atol=limit, equal_nan=True))


# Failures


def shrunk(graph: Graph, fails: Callable[[Graph], bool]) -> Graph:
    """A graph with as few calls and inputs as still fail."""
    changed = True
    while changed:
        changed = False
        for index in range(len(graph.steps) - 1, -1, -1):
            smaller = _without(graph, index)
            if smaller is not None and smaller.steps and fails(smaller):
                graph, changed = smaller, True
                break
    used = [given for given in graph.inputs if _used(graph, given.name)]
    smaller = replace(graph, inputs=tuple(used))
    return smaller if used and fails(smaller) else graph


def _without(graph: Graph, index: int) -> Graph | None:
    """The graph without one call and those that need it."""
    gone = {graph.steps[index].name}
    kept = []
    for step in graph.steps:
        if step.name in gone or any(_mentions(step.text, name) for name in gone):
            gone.add(step.name)
        else:
            kept.append(step)
    return replace(graph, steps=tuple(kept))


def _used(graph: Graph, name: str) -> bool:
    return any(_mentions(step.text, name) for step in graph.steps)


def script(graph: Graph, problem: str) -> str:
    """A program that shows the problem."""
    given = "".join([f"    {item!r},\n" for item in graph.inputs])
    steps = "".join([f"    {item!r},\n" for item in graph.steps])
    quoted = "\n".join([f"# {line}" for line in problem.splitlines()[:10]])
    return (
        f"{quoted}\n"
        "from tests.lib.random_graphs import Given, Graph, Step, build, problem_of\n\n"
        f"graph = Graph({graph.n}, {graph.m}, (\n{given}), (\n{steps}))\n"
        "print(build(graph)[0])\n"
        "problem = problem_of(graph)\n"
        "assert problem is None, problem\n"
    )


def report(seed: int) -> str | None:
    """The script of the smallest failing graph that comes from a seed; None if it is right."""
    graph = random_graph(seed)
    problem = problem_of(graph) if graph.steps else None
    if problem is None:
        return None
    what = problem.split(":")[0]
    small = shrunk(graph, lambda other: (problem_of(other) or "").startswith(what))
    return f"# seed {seed}\n" + script(small, problem_of(small) or problem)
