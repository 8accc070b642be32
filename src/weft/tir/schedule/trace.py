"""The recorded calls of a schedule: printed as a program, stored as JSON, replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from weft.ir.expr import FloatImm, IntImm, PrimExpr, StringImm
from weft.ir.functor import collect, substitute
from weft.ir.json_text import load_json, save_json
from weft.ir.node import Node
from weft.support import slots
from weft.support.errors import IRKeyError, IRTypeError, IRValueError, TVMError, wrong_type
from weft.support.public_entry import public_entry
from weft.tir.expr import Var
from weft.tir.index_map import IndexMap
from weft.tir.schedule.instruction import Instruction, InstructionKind, Name, index_map_text
from weft.tir.schedule.random_variable import BlockRV, LoopRV, RandomVariable

INDENT = "  "
POSTPROC = "EnterPostproc"
PREFIXES = {BlockRV: "b", LoopRV: "l", Var: "v"}
VARIABLES: Mapping[str, Callable[[str], RandomVariable | Var]] = {
    "b": BlockRV, "l": LoopRV, "v": lambda name: Var(name, "int32"),
}  # fmt: skip
"""The first letter of a name in JSON -> what has such names."""
N = TypeVar("N", bound=Node)
Entry: TypeAlias = tuple[str, Sequence[object], Sequence[object], Sequence[str]]
"""An instruction of JSON: its name, inputs, attributes and the names of its outputs."""
DecisionProvider = Callable[[Instruction, list[object], list[object], object], object]


class Trace:
    """Instructions in order, and the decisions of those that sample.

    ``str(trace)`` and ``as_python()`` are a program over a schedule ``sch``; ``as_json()`` is plain
    lists, strings and numbers. Both give the same module again when applied to the same function.
    """

    def __init__(
        self,
        insts: list[Instruction] | None = None,
        decisions: Mapping[Instruction, object] | None = None,
    ) -> None:
        self.insts: list[Instruction] = list(insts or ())
        self.decisions: dict[Instruction, object] = dict(decisions or {})

    # ---- edits

    def get_decision(self, inst: Instruction) -> object:
        """The decision of a sampling instruction; None if there is none."""
        return self.decisions.get(inst)

    def append(self, inst: Instruction, decision: object = None) -> None:
        """Add a call at the end."""
        if not isinstance(inst, Instruction):
            raise wrong_type("Trace.append: expected an Instruction", inst)
        self.insts.append(inst)
        if decision is not None:
            self.decisions[inst] = decision

    def pop(self) -> Instruction | None:
        """Remove the last call and return it; None if there is none."""
        if not self.insts:
            return None
        last = self.insts.pop()
        self.decisions.pop(last, None)
        return last

    def with_decision(self, inst: Instruction, decision: object, remove_postproc: bool) -> Trace:
        """A copy in which one sampling instruction has another decision."""
        kept = self._instructions(remove_postproc)
        decisions = {call: self.decisions[call] for call in kept if call in self.decisions}
        decisions[inst] = decision
        return Trace(kept, decisions)

    def simplified(self, remove_postproc: bool) -> Trace:
        """A copy without the pure calls whose results nobody uses."""
        used: set[int] = set()
        kept: list[Instruction] = []
        for inst in reversed(self._instructions(remove_postproc)):
            if inst.kind.is_pure and not any(id(out) in used for out in inst.outputs):
                continue
            kept.append(inst)
            used |= {id(rv) for rv in random_variables(inst.inputs)}
        kept.reverse()
        return Trace(kept, {call: self.decisions[call] for call in kept if call in self.decisions})

    def _instructions(self, remove_postproc: bool) -> list[Instruction]:
        names = [inst.kind.name for inst in self.insts]
        if remove_postproc and POSTPROC in names:
            return self.insts[: names.index(POSTPROC)]
        return list(self.insts)

    # ---- replay

    def apply_to_schedule(
        self,
        sch: Any,
        remove_postproc: bool = False,
        decision_provider: DecisionProvider | None = None,
    ) -> None:
        """Make the calls on ``sch``; ``decision_provider`` may change decisions on the way."""
        known: dict[object, object] = {}
        for inst in self._instructions(remove_postproc):
            self.play(inst, sch, known, decision_provider)

    def play(
        self,
        inst: Instruction,
        sch: Any,
        known: dict[object, object],
        decision_provider: DecisionProvider | None = None,
    ) -> None:
        """Make one call on ``sch``; ``known`` has the results of the calls before it, by what they
        were recorded as, and gets those of this one.
        """
        inputs = [translated(item, known) for item in inst.inputs]
        decision = self.get_decision(inst)
        if decision_provider is not None:
            decision = decision_provider(inst, inputs, list(inst.attrs), decision)
        result = inst.kind.call(sch, inst.kind.arguments(inputs, inst.attrs), decision)
        bind_outputs(inst.kind, inst.outputs, result, known)

    @staticmethod
    @public_entry("apply_json_to_schedule")
    def apply_json_to_schedule(json_obj: object, sch: Any) -> None:
        """Make the calls that ``as_json`` wrote down on ``sch``."""
        instructions, decisions = _instructions_and_decisions(json_obj)
        named: dict[object, object] = {}
        for index, item in enumerate(instructions):
            entry = _checked_entry(index, item)
            try:
                _apply_entry(entry, decisions.get(index), sch, named)
            except (TVMError, MemoryError, RecursionError):
                raise
            except Exception as error:  # any failure means that the JSON text is damaged
                shown = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                raise IRValueError(
                    f"apply_json_to_schedule: instruction {index} ({entry[0]}) has arguments that "
                    f"the primitive does not take ({shown})"
                ) from error

    # ---- text and JSON

    @staticmethod
    @public_entry("Trace.from_json")
    def from_json(json_obj: object) -> Trace:
        """The trace that ``as_json`` wrote down, without a schedule: names stand for themselves.

        Whether its calls fit a program shows when it is applied. Raises IRValueError for what is
        no trace, IRKeyError for unknown instructions.

        >>> trace = Trace.from_json(
        ...     [[["GetBlock", [], ["C", "main"], ["b0"]], ["ComputeInline", ["b0"], [], []]], []]
        ... )
        >>> trace.as_python()
        ['b0 = sch.get_block(name="C", func_name="main")', 'sch.compute_inline(block=b0)']
        """
        trace, named = Trace(), dict[object, object]()
        instructions, decisions = _instructions_and_decisions(json_obj)
        for index, entry in enumerate(instructions):
            name, inputs, attrs, outputs = _checked_entry(index, entry)
            kind = InstructionKind.get(name)
            new = [VARIABLES.get(output[:1], RandomVariable)(output) for output in outputs]
            inst = Instruction(
                kind,
                [_from_json(item, named) for item in inputs],
                [_decoded(kind, i, item) for i, item in enumerate(attrs)],
                [*new],
            )
            named.update(zip(outputs, new, strict=True))
            trace.append(inst, decisions.get(index))
        return trace

    def as_json(self, remove_postproc: bool = False) -> list[object]:
        """``[instructions, decisions]`` of plain values (TVM's layout)."""
        names: dict[int, str] = {}
        instructions, decisions = [], []
        for index, inst in enumerate(self._instructions(remove_postproc)):
            inputs = [_to_json(item, names) for item in inst.inputs]
            attrs = [_encoded(inst.kind, i, item) for i, item in enumerate(inst.attrs)]
            instructions.append([inst.kind.name, inputs, attrs, _name_outputs(inst, names)])
            if inst in self.decisions:
                decisions.append([index, _plain(self.decisions[inst])])
        return [instructions, decisions]

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """One statement per call, over a schedule named ``sch``."""
        names: dict[int, str] = {}
        lines = []
        for inst in self._instructions(remove_postproc):
            inputs = [_named(item, names) for item in inst.inputs]
            arguments = inst.kind.arguments(inputs, inst.attrs)
            for key, text in inst.kind.texts.items():
                given = inst.kind.arguments(inst.inputs, inst.attrs)[key]
                arguments[key] = Name(text(given))
            outputs = _name_outputs(inst, names)
            lines.append(inst.kind.as_python(arguments, outputs, self.get_decision(inst)))
        return lines

    def __str__(self) -> str:
        body = self.as_python() or ["pass"]
        head = ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"]
        return "\n".join([*head, *[INDENT + line for line in body]])

    __repr__ = __str__

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the trace, highlighted where the terminal or notebook can."""
        del black_format  # the text has one layout
        slots.text.get().show_source(str(self), style)


def _instructions_and_decisions(json_obj: object) -> tuple[Sequence[object], dict[int, object]]:
    """The two parts of a trace in JSON."""
    if not isinstance(json_obj, (list, tuple)) or len(json_obj) != 2:
        raise IRValueError(
            "apply_json_to_schedule: expected [instructions, decisions] as Trace.as_json gives"
        )
    instructions, chosen = json_obj
    decisions = _decisions(chosen)
    if not isinstance(instructions, (list, tuple)):
        raise IRValueError(
            "apply_json_to_schedule: expected a list of instructions, got "
            f"{type(instructions).__name__}"
        )
    return instructions, decisions


def _decisions(chosen: object) -> dict[int, object]:
    """Decisions by the number of their instruction."""
    if not isinstance(chosen, (list, tuple)) or not all(
        isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], int)
        for item in chosen
    ):
        raise IRValueError(
            "apply_json_to_schedule: expected decisions as a list of [number of an instruction, "
            f"decision], got {chosen!r:.80}"
        )
    return dict(chosen)


def _checked_entry(index: int, entry: object) -> Entry:
    """An instruction of JSON, if it is one: ``[name, inputs, attributes, outputs]``."""
    if (
        not isinstance(entry, (list, tuple))
        or len(entry) != 4
        or not isinstance(entry[0], str)
        or not all(isinstance(part, (list, tuple)) for part in entry[1:])
        or not all(isinstance(name, str) for name in entry[3])
    ):
        raise IRValueError(
            f"apply_json_to_schedule: instruction {index}: expected [name, inputs, attributes, "
            f"outputs], a text and three lists, got {entry!r:.200}"
        )
    name, inputs, attrs, outputs = entry
    return name, inputs, attrs, outputs


def _apply_entry(entry: Entry, decision: object, sch: Any, named: dict[object, object]) -> None:
    """Make the call of one instruction; its results get their names in ``named``."""
    name, inputs, attrs, outputs = entry
    kind = InstructionKind.get(name)
    arguments = kind.arguments(
        [_from_json(item, named) for item in inputs],
        [_decoded(kind, i, item) for i, item in enumerate(attrs)],
    )
    result = kind.call(sch, arguments, decision)
    bind_outputs(kind, outputs, result, named)


def random_variables(value: object) -> list[RandomVariable | Var]:
    """The random variables inside inputs, in order."""
    if isinstance(value, (RandomVariable, Var)):
        return [value]
    if isinstance(value, (list, tuple)):
        return [rv for item in value for rv in random_variables(item)]
    if isinstance(value, dict):
        return [rv for item in value.values() for rv in random_variables(item)]
    return list(collect(value, Var)) if isinstance(value, Node) else []


def translated(value: object, known: Mapping[object, Any]) -> object:
    """Inputs with the random variables of this run in place of those that were recorded."""
    if isinstance(value, (RandomVariable, Var)):
        if value not in known:
            raise IRKeyError(f"Trace: {value!r} is used before a call returned it")
        return known[value]
    if isinstance(value, (list, tuple)):
        return [translated(item, known) for item in value]
    if isinstance(value, Node):
        mapping = {old: new for old, new in known.items() if isinstance(old, Var)}
        return substitute(value, mapping)
    return value


def bind_outputs(
    kind: InstructionKind, names: Sequence[object], result: object, known: dict[object, object]
) -> None:
    """Note in ``known`` which results of this run the recorded ``names`` stand for."""
    results = [] if result is None else result if isinstance(result, list) else [result]
    if len(names) != len(results):
        raise IRValueError(
            f"Trace: {kind.method} returned {len(results)} values, {len(names)} were recorded"
        )
    known.update(zip(names, results, strict=True))


def _name_outputs(inst: Instruction, names: dict[int, str]) -> list[str]:
    output_names = []
    for output in inst.outputs:
        prefix = next((p for kind, p in PREFIXES.items() if isinstance(output, kind)), "_")
        name = "_" if prefix == "_" else f"{prefix}{len(names)}"
        names[id(output)] = name
        output_names.append(name)
    return output_names


def _named(value: object, names: Mapping[int, str]) -> object:
    """Inputs with names for random variables, to be printed."""
    if isinstance(value, (RandomVariable, Var)):
        return Name(_lookup(value, names))
    if isinstance(value, (list, tuple)):
        return [_named(item, names) for item in value]
    if isinstance(value, IndexMap):
        return Name(index_map_text(_renamed(value, names)))
    if isinstance(value, Node) and not isinstance(value, (IntImm, FloatImm, StringImm)):
        return Name(str(_renamed(value, names)))
    return value


def _lookup(value: object, names: Mapping[int, str]) -> str:
    if id(value) not in names:
        raise IRKeyError(f"Trace: {value!r} is used before a call returned it")
    return names[id(value)]


def _renamed(value: N, names: Mapping[int, str]) -> N:
    variables = {v: Var(names[id(v)], v.dtype) for v in collect(value, Var) if id(v) in names}
    return substitute(value, variables)


def _to_json(value: object, names: Mapping[int, str]) -> object:
    if isinstance(value, (RandomVariable, Var)):
        return _lookup(value, names)
    if value is None:
        return "None"
    if isinstance(value, (list, tuple)):
        return [_to_json(item, names) for item in value]
    if isinstance(value, StringImm):
        return f'"{value.value}"'
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, Node):
        return save_json(_renamed(value, names))
    return _plain(value)


def _from_json(value: object, named: Mapping[object, object]) -> object:
    if isinstance(value, list):
        return [_from_json(item, named) for item in value]
    if not isinstance(value, str):
        return value
    if value == "None":
        return None
    if value.startswith('"'):
        return value[1:-1]
    if value.startswith("{"):
        node = load_json(value)
        variables = {v: named[v.name] for v in collect(node, Var) if v.name in named}
        return substitute(node, variables)
    if value not in named:
        raise IRKeyError(f"apply_json_to_schedule: {value} is used before a call returned it")
    return named[value]


def _encoded(kind: InstructionKind, index: int, value: object) -> object:
    codec = kind.attr_codec.get(kind.attrs[index])
    return _plain(value if codec is None else codec[0](value))


def _decoded(kind: InstructionKind, index: int, value: object) -> object:
    codec = kind.attr_codec.get(kind.attrs[index]) if index < len(kind.attrs) else None
    return value if codec is None else codec[1](value)


def _plain(value: object) -> object:
    """A value of attributes or decisions as JSON has it."""
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (PrimExpr, Node)):
        return save_json(value)
    raise IRTypeError(f"Trace.as_json: there is no JSON form of a {type(value).__name__}")
