"""Instructions of a trace: the kinds of calls of a schedule, and recorded calls.

A kind is derived from the signature of the method that ``@primitive`` declares: which parameters
are inputs (random variables and expressions of them), which are attributes. So one generic rule
replays, prints and serializes the calls of all kinds.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from weft.ir.expr import FloatImm, IntImm, StringImm
from weft.support.annotations import spelled
from weft.support.errors import IRKeyError, IRTypeError, IRValueError
from weft.tir.index_map import IndexMap
from weft.tir.schedule.random_variable import RandomVariable

DECISION = "decision"
"""The parameter of sampling methods that is neither an input nor an attribute."""
Codec: TypeAlias = tuple[Callable[[Any], object], Callable[[object], object]]
"""The functions from an attribute to its JSON form, and back."""


@dataclass(frozen=True, eq=False)
class InstructionKind:
    """One method of ``Schedule`` as traces know it.

    ``inputs`` are names of parameters; one written ``*name`` takes all inputs that are left, as a
    list or, if the method has ``*name``, as arguments. ``attrs`` are the other parameters.
    """

    name: str
    method: str
    inputs: tuple[str, ...]
    attrs: tuple[str, ...]
    is_pure: bool
    signature: inspect.Signature
    has_decision: bool
    attr_codec: Mapping[str, Codec] = field(default_factory=dict)
    texts: Mapping[str, Callable[[Any], str]] = field(default_factory=dict)
    """Parameter -> how its argument is printed, for those that have a form of their own."""

    REGISTRY: ClassVar[dict[str, InstructionKind]] = {}

    @staticmethod
    def get(name: str) -> InstructionKind:
        """The kind of that name, such as ``"Split"``; IRKeyError if there is none."""
        kind = InstructionKind.REGISTRY.get(name)
        if kind is None:
            raise IRKeyError(f"InstructionKind: there is no instruction {name!r}")
        return kind

    def same_as(self, other: object) -> bool:
        """Whether both are the same kind."""
        return self is other

    def __repr__(self) -> str:
        return f"InstructionKind({self.name})"

    # ---- arguments <-> inputs and attributes

    def split_arguments(self, arguments: Mapping[str, object]) -> tuple[list[object], list[object]]:
        """Inputs and attributes of a call with these arguments (``decision`` is in neither)."""
        inputs: list[object] = []
        for name in self.inputs:
            value = arguments[name.lstrip("*")]
            if name.startswith("*"):
                inputs.extend(several(value))
            else:
                inputs.append(list(value) if isinstance(value, (list, tuple)) else value)
        return inputs, [arguments[name] for name in self.attrs]

    def arguments(self, inputs: Sequence[object], attrs: Sequence[object]) -> dict[str, object]:
        """The arguments of a call from its inputs and attributes."""
        if len(attrs) != len(self.attrs):
            raise IRValueError(
                f"{self.name}: expected {len(self.attrs)} attributes, got {len(attrs)}"
            )
        left = list(inputs)
        arguments: dict[str, object] = {}
        for name in self.inputs:
            if name.startswith("*"):
                arguments[name[1:]], left = left, []
            elif not left:
                raise IRValueError(f"{self.name}: the input {name} is missing")
            else:
                arguments[name] = left.pop(0)
        if left:
            raise IRValueError(f"{self.name}: {len(left)} inputs too many")
        arguments.update(zip(self.attrs, attrs, strict=True))
        return arguments

    def call(
        self, schedule: Any, arguments: Mapping[str, object], decision: object = None
    ) -> object:
        """Call the method on ``schedule``; what it returns."""
        positional: list[object] = []
        named = dict(arguments)
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                positional = several(named.pop(parameter.name))
        if self.has_decision:
            named[DECISION] = decision
        return getattr(schedule, self.method)(*positional, **named)

    # ---- text

    def as_python(
        self, arguments: Mapping[str, object], outputs: Sequence[str], decision: object = None
    ) -> str:
        """The call as a line of Python; ``arguments`` hold names for random variables."""
        parts = []
        for parameter in list(self.signature.parameters.values())[1:]:
            if parameter.name == DECISION:
                if decision is not None:
                    parts.append(f"decision={python_text(decision)}")
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                parts += [python_text(item) for item in several(arguments[parameter.name])]
            elif not (parameter.default is None and arguments[parameter.name] is None):
                parts.append(f"{parameter.name}={python_text(arguments[parameter.name])}")
        text = f"sch.{self.method}({', '.join(parts)})"
        if not outputs:
            return text
        names = f"{outputs[0]}," if len(outputs) == 1 and self.returns_list else ", ".join(outputs)
        return f"{names} = {text}"

    @property
    def returns_list(self) -> bool:
        """Whether the method returns a list, even if that has one item."""
        return spelled(self.signature.return_annotation).lower().startswith("list")


class Call:
    """A call that is being executed; errors and expired references name it.

    ``decision`` is set by methods that sample.
    """

    def __init__(self, kind: InstructionKind, arguments: Mapping[str, object]) -> None:
        self.kind, self.arguments = kind, dict(arguments)
        self.decision: object = None

    def __str__(self) -> str:
        parts = []
        for parameter in list(self.kind.signature.parameters.values())[1:]:
            value = self.arguments.get(parameter.name)
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                parts += [short_text(item) for item in several(value)]
            elif isinstance(value, RandomVariable):
                parts.append(short_text(value))
            elif value is not parameter.default and parameter.name != DECISION:
                parts.append(f"{parameter.name}={short_text(value)}")
        return f"sch.{self.kind.method}({', '.join(parts)})"


def short_text(value: object) -> str:
    """An argument as an error names it."""
    if isinstance(value, RandomVariable):
        return value.hint
    if isinstance(value, list):
        return f"[{', '.join([short_text(item) for item in value])}]"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 and "\n" not in text else "..."


def several(value: object) -> list[object]:
    """What a parameter ``*name`` holds."""
    assert value is None or isinstance(value, Iterable)
    return [] if value is None else list(value)


class Name(str):
    """A name of a random variable inside arguments that are to be printed."""

    __slots__ = ()


def python_text(value: object) -> str:
    """A value as Python text that evaluates to it."""
    if isinstance(value, Name):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join([python_text(item) for item in value])}]"
    if isinstance(value, tuple):
        inner = ", ".join([python_text(item) for item in value])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Mapping):
        pairs = [f"{python_text(k)}: {python_text(v)}" for k, v in value.items()]
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return python_text(value.value)
    if isinstance(value, IndexMap):
        return index_map_text(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def index_map_text(index_map: IndexMap) -> str:
    """An index map as a lambda with plain numbers, which take the type of the axes."""
    return re.sub(r"T\.int64\((-?\d+)\)", r"\1", index_map.to_python_string())


@dataclass(eq=False)
class Instruction:
    """One call: its kind, inputs, attributes and the random variables it returned."""

    kind: InstructionKind
    inputs: list[object]
    attrs: list[object]
    outputs: list[object]

    def __post_init__(self) -> None:
        if not isinstance(self.kind, InstructionKind):
            raise IRTypeError(f"Instruction: expected an InstructionKind, got {self.kind!r}")

    def same_as(self, other: object) -> bool:
        """Whether both are the same call."""
        return self is other

    def __str__(self) -> str:
        arguments = self.kind.arguments([anonymous(item) for item in self.inputs], self.attrs)
        return self.kind.as_python(arguments, ["_"] * len(self.outputs))

    __repr__ = __str__


def anonymous(value: object) -> object:
    """The inputs of a call with ``_`` for every random variable."""
    if isinstance(value, (list, tuple)):
        return [anonymous(item) for item in value]
    plain = value is None or isinstance(
        value, str | int | float | dict | IntImm | FloatImm | StringImm
    )
    return value if plain or hasattr(value, "final_indices") else Name("_")
