"""The methods that ``@node`` writes for a class of nodes: its constructor and its walks.

A method that is written for one class reads the attributes by their names, converts each argument
as its annotation says, and tests for None only what may be None. Walks take most of the time of a
compilation: ``_parts_`` gives the nodes right below one, ``_rebuilt_`` is what a mutator makes of a
node for whose class it has no method. For ``Ramp`` they begin like this::

    def _parts_(self):
        return (self.base, self.stride, self.lanes,)

    def _rebuilt_(self, visit, walk):
        base = self.base
        new_base = base if (base._summary or summary_of(base)) | (
            ignored := walk.ignored) == ignored else visit(base)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, cast

MISSING: Final = object()

Converter = Callable[[Any], object]
"""A function from a constructor's argument to what the field holds."""

CONVERSIONS: Final[dict[str, tuple[type, Converter]]] = {}
"""Annotation name -> (class, conversion of anything else to it), for constructor arguments."""


def register_conversion(kind: str, accepted: type, converter: Converter) -> None:
    """Let fields annotated ``kind`` (or ``Array[kind]``) take what ``converter`` converts."""
    CONVERSIONS[kind] = (accepted, converter)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The description of one field of a node class."""

    name: str
    annotation: str
    default: object = MISSING
    defines: bool = False
    compare: bool = True
    visit: bool = True
    derived: bool = False
    takes_none: bool = False
    """Whether the constructor takes None, which ``_check_`` replaces by a value."""
    stored: str = ""
    """A more precise annotation, with which ``load_json`` checks the field."""

    @property
    def optional(self) -> bool:
        """Whether the constructor takes None."""
        return self.takes_none or "None" in self.annotation


def write_init(
    cls: type, arguments: Sequence[FieldSpec], names: Mapping[str, object], *, checks: bool
) -> None:
    """Write ``__init__``: conversions by annotation, then the ``_check_`` hook if there is one."""
    scope = dict(names)
    for kind, (accepted, converter) in CONVERSIONS.items():
        scope[kind], scope[f"as_{kind}"] = accepted, converter
    parameters, lines = ["self"], []
    for spec in arguments:
        default = ""
        if spec.default is not MISSING:
            scope[f"_default_{spec.name}"] = spec.default
            default = f"=_default_{spec.name}"
        parameters.append(f"{spec.name}{default}")
        lines.append(f"self.{spec.name} = {_conversion(spec)}")
    parameters.append("span=None")
    lines += ["self.span = span", "self._cache = None", "self._summary = 0"]
    if checks:
        lines.append("self._check_()")
    _write(cls, "__init__", parameters, lines, scope)


def _conversion(spec: FieldSpec) -> str:
    """The expression that turns the argument of that name into the field's value."""
    name = spec.name
    kind = spec.annotation.removesuffix(" | None")
    element = kind[6:-1] if kind.startswith("Array[") else ""
    if element in CONVERSIONS:
        text = f"as_array({name}, {element}, as_{element})"
    elif kind.startswith("Array"):
        text = f"({name} if type({name}) is Array else Array(sequence({name})))"
    elif kind.startswith("Map"):
        return f"({name} if isinstance({name}, Map) else Map({name} or ()))"
    elif kind in CONVERSIONS:
        text = f"({name} if isinstance({name}, {kind}) else as_{kind}({name}))"
    else:
        return name
    if kind.startswith("Array") and spec.default == ():
        return f"Array() if {name} is None else {text}"
    return f"None if {name} is None else {text}" if spec.optional else text


def write_parts(cls: type, children: Sequence[FieldSpec], names: Mapping[str, object]) -> None:
    """Write ``_parts_``: the nodes right below, those in sequences and mappings too."""
    parts = []
    for spec in children:
        value, kind = f"self.{spec.name}", spec.annotation
        if kind == "PrimExpr":
            parts.append(value)
        elif kind == "Array[PrimExpr]":
            parts.append(f"*{value}")
        elif kind.startswith(("Array", "Map")):
            parts.append(f"*(nodes_in({value}) if {value} else ())")
        else:
            rest = "nodes_in(part) if part else ()"
            parts.append(f"*((part,) if isinstance(part := {value}, Node) else {rest})")
    text = "".join([f"{part}, " for part in parts])
    _write(cls, "_parts_", ["self"], [f"return ({text})"], names)


def write_rebuilt(
    cls: type,
    arguments: Sequence[FieldSpec],
    children: Sequence[FieldSpec],
    names: Mapping[str, object],
    *,
    by_with: bool,
) -> None:
    """Write ``_rebuilt_``: the node with visited children, the same object if none changed.

    ``by_with``: whether the class has a ``with_`` of its own, which makes the node then.
    """
    lines = []
    for name, kind in [(spec.name, spec.annotation) for spec in children]:
        if kind.startswith("Array"):
            lines += [f"{name} = self.{name}", f"new_{name} = rebuilt_items({name}, visit, walk)"]
            continue
        ignored = "(ignored := walk.ignored) == ignored"
        skipped = f"({name}._summary or summary_of({name})) | {ignored}"
        if kind != "PrimExpr":
            skipped = f"{name} is None or (isinstance({name}, Node) and {skipped})"
        lines.append(f"{name} = self.{name}")
        lines.append(f"new_{name} = {name} if {skipped} else visit({name})")
    same = [f"new_{spec.name} is {spec.name}" for spec in children]
    lines.append(f"if {' and '.join(same or ['True'])}: return self")
    visited = {spec.name for spec in children}
    if by_with:
        changes = ", ".join([f"{spec.name}=new_{spec.name}" for spec in children])
        lines.append(f"return self.with_({changes})")
    else:
        fields = [spec.name for spec in arguments]
        values = [f"new_{name}" if name in visited else f"self.{name}" for name in fields]
        lines.append(f"copy = type(self)({', '.join([*values, 'span=self.span'])})")
        lines += ["self._carry_(copy)", "return copy"]
    _write(cls, "_rebuilt_", ["self", "visit", "walk"], lines, names)


def _write(
    cls: type, name: str, parameters: list[str], lines: list[str], names: Mapping[str, object]
) -> None:
    """Give a class the method of those parameters and lines."""
    source = "\n    ".join([f"def {name}({', '.join(parameters)}):", *lines])
    scope = dict(names)
    exec(compile(source, f"<{cls.__name__}.{name}>", "exec"), scope)  # noqa: S102 - ours
    method = cast(FunctionType, scope[name])
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, method)
