"""JavaScript of an exported model: a CallPlan as the text of an ES module, and its types.

``loader.js`` is what all models share; lines that end in ``//? feature`` are for models that need
the feature. Extents are integer expressions over symbols, which become JavaScript.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from weft.backends.wasm.link import STACK
from weft.runtime.call.plan import Bind, Cast, Compare, Limit, Pass
from weft.runtime.export.described_call import DescribedCall
from weft.runtime.extent import Tree, parse
from weft.runtime.ndarray import storage_dtype
from weft.support.errors import UnsupportedError

ARRAYS: Final = {
    "bool": "Uint8Array", "int8": "Int8Array", "int16": "Int16Array", "int32": "Int32Array",
    "int64": "BigInt64Array", "uint8": "Uint8Array", "uint16": "Uint16Array",
    "uint32": "Uint32Array", "uint64": "BigUint64Array", "float16": "Uint16Array",
    "bfloat16": "Uint16Array", "float32": "Float32Array", "float64": "Float64Array",
    "float8_e4m3fn": "Uint8Array", "float8_e5m2": "Uint8Array",
}  # fmt: skip
"""Data type -> JavaScript's array of it; of short floats it has the bits."""
RELAXED_PROBE: Final = bytes.fromhex("0061736d01000000010401600000030201000a0901070000fd85021a0b")
"""A module whose function has a relaxed multiply-add: an engine without it calls it invalid."""
_SIGNS: Final = {"==": "===", "!=": "!=="}
_FUNCTIONS: Final = {
    "//": "div", "%": "mod", "min": "Math.min", "max": "Math.max", "abs": "Math.abs"
}  # fmt: skip
_FEATURE: Final = re.compile(r"^(.*?) *//\? (\w+)$")


class Tensor(NamedTuple):
    """An input or an output as JavaScript sees it."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def array(self) -> str:
        """The name of its class of arrays."""
        return ARRAYS[self.dtype]


class Threads(NamedTuple):
    """The most threads that a model runs on, and the pages of their memory at first."""

    most: int
    pages: int


def js_expression(extent: int | str) -> str:
    """An extent as a JavaScript expression over the variables ``v_<symbol>``.

    >>> js_expression("n // 2 + 1")
    '(div(v_n, 2) + 1)'
    """
    return _expression(parse(extent))


def _expression(tree: Tree) -> str:
    if isinstance(tree, int):
        return str(tree) if tree >= 0 else f"({tree})"
    if isinstance(tree, str):
        return f"v_{tree}"
    operands = [_expression(operand) for operand in tree.operands]
    if tree.name == "if":
        return f"({operands[0]} ? {operands[1]} : {operands[2]})"
    if tree.name in ("neg", "not"):
        return f"({'-' if tree.name == 'neg' else '!'}{operands[0]})"
    function = _FUNCTIONS.get(tree.name)
    if function is not None:
        return f"{function}({', '.join(operands)})"
    return f"({operands[0]} {_SIGNS.get(tree.name, tree.name)} {operands[1]})"


class ModuleText:
    """The texts of one model's package: ``module`` (JavaScript), ``types`` (TypeScript).

    Args:
        call: the model's inputs, results and plan.
        name: what errors call the model.
        threads: those that its loops may run on; None: one.
    """

    def __init__(self, call: DescribedCall, name: str, threads: Threads | None = None) -> None:
        self.call, self.plan, self.name, self.threads = call, call.plan, name, threads
        self.inputs = [
            Tensor(label, param.dtype, param.shape)
            for label, param in zip(call.names, call.inputs, strict=True)
        ]
        self.outputs = [Tensor(r.name, r.dtype, r.shape) for r in call.results]
        self.given = [self.inputs[number] for number in call.public]

    def module(self) -> str:
        """The ES module ``model.js``."""
        loader = Path(__file__).with_name("loader.js").read_text(encoding="utf-8")
        own = [*self._tables(), *self._sizes()]
        divides = {"divisions"} if re.search(r"\b(div|mod)\(", "\n".join(own)) else set()
        lines = [*own, *_chosen(loader, self._features() | divides)]
        return "\n".join(lines) + "\n"

    def _features(self) -> set[str]:
        plan = self.plan
        planned = plan.arena is not None and plan.arena.planned is not None
        wanted = {
            "symbols": bool(plan.symbols) or planned,
            "planned": planned,
            "fixed": not planned,
            "scalars": any(not tensor.shape for tensor in self.given),
            "casts": any(isinstance(step, Cast) for step in plan.checks),
            "limits": bool(self._limits()),
            "written": bool(self.call.signature.written),
            "states": bool(self.call.states),
            "threads": self.threads is not None,
            "values": any(r.source[0] == "expr" for r in self.call.results),
        }
        return {name for name, is_wanted in wanted.items() if is_wanted}

    def _tables(self) -> Iterator[str]:
        """What the loader reads of this model, as constants."""
        plan, call = self.plan, self.call
        handles = [item.kind for item in plan.passed if item.kind in _HANDLES]
        _refuse_others(plan.passed, self.name)
        dtypes = dict.fromkeys(
            [*[t.dtype for t in (*self.inputs, *self.outputs)], *[o.dtype for o in plan.outputs]]
        )
        types = ", ".join([f"{dtype}: {ARRAYS[dtype]}" for dtype in dtypes])
        yield f"const TYPES = {{ {types} }};"
        yield f"const RELAXED = Uint8Array.of({', '.join(map(str, RELAXED_PROBE))});"
        yield f"const NAME = {_text(self.name)}, ENTRY = {_text(plan.native_symbol)};"
        tensors = len(plan.constants) + len(call.states)
        yield f"const TENSORS = {tensors}, HANDLES = {_text(handles)};"
        yield f"const natives = {_text([output.dtype for output in plan.outputs])};"
        yield f"export const inputs = {_rows([self._input(k) for k in call.public])};"
        yield f"export const outputs = {_rows(self._described_outputs())};"
        if plan.arena is not None and plan.arena.planned is not None:
            yield f"const LIVES = {_text([list(life) for life in plan.arena.planned.lives])};"
        if call.signature.written:
            items = call.items()
            pairs = [[source, items[output][1]] for source, output in call.signature.written]
            yield f"const WRITTEN = {_text(pairs)};"
        if self.threads is not None:
            most, pages = self.threads
            yield f"const THREADS = {{ most: {most}, pages: {pages}, stack: {STACK} }};"
        if call.states:
            yield f"const STATES = {_rows(self._described_states())};"

    def _input(self, number: int) -> dict[str, object]:
        tensor = self.inputs[number]
        row: dict[str, object] = {
            "name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)
        }  # fmt: skip
        is_scalar = self.call.inputs[number].kind == "scalar"
        return {**row, "scalar": True} if is_scalar else row

    def _described_outputs(self) -> Iterator[dict[str, object]]:
        values = 0
        pairs = zip(self.outputs, self.call.results, strict=True)
        for number, (tensor, result) in enumerate(pairs):
            kind, content = result.source
            place: list[object] = [kind, content]
            if kind == "expr":
                place, values = ["value", values], values + 1
            row: dict[str, object] = {
                "name": tensor.name, "dtype": tensor.dtype, "shape": list(tensor.shape)
            }  # fmt: skip
            if place != ["output", number]:
                row |= {"from": place[0], "index": place[1]}
            yield row

    def _described_states(self) -> Iterator[dict[str, object]]:
        items = self.call.items()
        for place, state in enumerate(self.call.signature.states):
            kind, number = items[state.output]
            yield {
                "input": state.input, "name": state.name, "shape": list(self.call.shapes[place]),
                "size": self.call.state_sizes[place], "from": kind, "index": number,
            }  # fmt: skip

    def _limits(self) -> list[tuple[str, int, int]]:
        """The symbols that must be within bounds, as the model was compiled for."""
        largest = 2**53 - 1
        extents = {s.symbol for s in self.plan.checks if isinstance(s, Bind) and s.of == "shape"}
        rows = [
            (symbol, -largest if low is None else low, largest if high is None else high)
            for symbol, low, high in self.call.signature.ranges
            if symbol in self.plan.symbols
            and (high is not None or (low is not None and (low > 0 or symbol not in extents)))
        ]
        steps = [step for step in self.plan.checks if isinstance(step, Limit)]
        return rows + [(step.symbol, 0, step.most) for step in steps]

    def _sizes(self) -> Iterator[str]:
        """The function that gives, for the shapes of the inputs, all other sizes."""
        plan = self.plan
        yield "function sizes(x) {"
        for step in plan.checks:
            if isinstance(step, Bind):
                yield f"  const v_{step.symbol} = {_bound(step)};"
        planned = plan.arena.planned if plan.arena is not None else None
        arena = 0 if plan.arena is None else plan.arena.size
        shapes = {step.argument: step.shape for step in plan.checks if isinstance(step, Compare)}
        yield "  const s = {"
        yield f"    inputs: {_shapes([shapes.get(k, ()) for k in range(len(self.inputs))])},"
        yield f"    outputs: {_shapes([output.shape for output in plan.outputs])},"
        yield f"    results: {_shapes([tensor.shape for tensor in self.outputs])},"
        yield f"    sizes: {_list(planned.sizes)}," if planned else f"    arena: {arena},"
        yield f"    symbols: [{', '.join([f'BigInt(v_{name})' for name in self._passed()])}],"
        yield from self._checked()
        yield "  };"
        yield "  return s;"
        yield "}"

    def _passed(self) -> list[str]:
        return [item.symbol for item in self.plan.passed if item.kind == "symbol"]

    def _checked(self) -> Iterator[str]:
        """The entries of ``sizes`` that only some models have."""
        casts = [
            f"[{_text(step.what)}, {js_expression(wanted)}, {js_expression(given)}]"
            for step in self.plan.checks
            if isinstance(step, Cast)
            for wanted, given in zip(step.resolved, step.actual, strict=True)
        ]
        if casts:
            yield f"    same: [{', '.join(casts)}],"
        limits = [f"[{_text(name)}, {low}, {high}, v_{name}]" for name, low, high in self._limits()]
        if limits:
            yield f"    limits: [{', '.join(limits)}],"
        values = [r.source[1] for r in self.call.results if r.source[0] == "expr"]
        if values:
            yield f"    values: {_list(values)},"

    def types(self) -> str:
        """The declarations ``model.d.ts``."""
        given = ", ".join(
            [f"{_identifier(t.name, k)}: {_argument(t)}" for k, t in enumerate(self.given)]
        )
        results = ", ".join([f"Tensor<{tensor.array}>" for tensor in self.outputs])
        rows = [f"{t.name}: {t.dtype} ({_joined(t.shape)})" for t in self.given]
        rows += [f"gives {t.name}: {t.dtype} ({_joined(t.shape)})" for t in self.outputs]
        described = [f"   * {row.replace('*/', '* /')}" for row in rows]
        return (
            _TYPES.replace("@RESET@\n", _RESET if self.call.states else "")
            .replace("@CLOSE@\n", "" if self.threads is None else _CLOSE)
            .replace("@THREADS@", "" if self.threads is None else "; threads?: number")
            .replace("@GIVEN@", given)
            .replace("@RESULTS@", results)
            .replace("@TENSORS@", "\n".join(described))
        )


_HANDLES: Final = ("arena", "offsets", "constants")


def _refuse_others(passed: Iterable[Pass], name: str) -> None:
    known = {"argument", "output", "symbol", *_HANDLES}
    for item in passed:
        if item.kind not in known:
            raise UnsupportedError(f"{name}: WebAssembly has no {item.kind} to pass to a model")


def _chosen(loader: str, features: set[str]) -> Iterator[str]:
    """The lines of the loader that a model with these features needs, without indentation."""
    for line in loader.splitlines():
        marked = _FEATURE.match(line)
        if marked is not None and marked[2] not in features:
            continue
        text = (line if marked is None else marked[1]).strip()
        if text and not text.startswith(("// ", "/** ")):
            yield text


def _bound(step: Bind) -> str:
    """Where a symbol's value is, in the shapes (or values, of numbers) of the inputs."""
    if step.of == "offset":
        return "0"
    return f"x[{step.argument}]" + (f"[{step.axis}]" if step.of == "shape" else "")


def _list(extents: Iterable[int | str]) -> str:
    return f"[{','.join([js_expression(extent) for extent in extents])}]"


def _shapes(shapes: Iterable[Sequence[int | str]]) -> str:
    return f"[{','.join([_list(shape) for shape in shapes])}]"


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _rows(rows: Iterable[dict[str, object]]) -> str:
    return "[\n" + "".join([f"{_text(row)},\n" for row in rows]) + "]"


def _joined(shape: Sequence[int | str]) -> str:
    return ", ".join(map(str, shape))


def _identifier(name: str, number: int) -> str:
    """A parameter's name in TypeScript."""
    text = re.sub(r"\W", "_", name, flags=re.ASCII)
    return text if text and not text[0].isdigit() else f"input{number}"


def _argument(tensor: Tensor) -> str:
    """The type of an argument: an array where its shape is known, else with the shape."""
    whole = f"Tensor<{tensor.array}>"
    if not tensor.shape:
        number = "bigint" if storage_dtype(tensor.dtype).itemsize == 8 else "number"
        return f"{tensor.array} | {whole} | {number if 'Big' in tensor.array else 'number'}"
    is_varying = any(isinstance(extent, str) for extent in tensor.shape)
    return whole if is_varying else f"{tensor.array} | {whole}"


_RESET: Final = """\
  /** Gives the states, which calls change, the values that they were saved with. */
  reset(): void;
"""
_CLOSE: Final = """\
  /** How many threads run the model's loops. */
  readonly threads: number;
  /** Ends the other threads; the model cannot run after it. */
  close(): void;
"""
_TYPES: Final = """\
/** A tensor: elements in row-major order, and the extent of each axis. */
export interface Tensor<A> { data: A; shape: readonly number[]; dtype?: string }
/** What the model takes or gives; a text in a shape is a size that may vary. */
export interface Described { name: string; dtype: string; shape: readonly (number | string)[] }
export const inputs: readonly Described[];
export const outputs: readonly Described[];
export interface Model {
  readonly inputs: readonly Described[];
  readonly outputs: readonly Described[];
  /** The file that runs: model.wasm, or model-relaxed.wasm where the engine can. */
  readonly module: string;
  readonly memoryBytes: number;
  /**
@TENSORS@
   */
  run(@GIVEN@): [@RESULTS@];
@RESET@
@CLOSE@
}
/** Loads the model; files: bytes in the place of those beside this module. */
export function load(
  files?: { wasm?: BufferSource; weights?: BufferSource@THREADS@ }
): Promise<Model>;
"""
