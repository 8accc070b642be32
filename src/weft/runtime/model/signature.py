"""Signature: how a model is called: nested arguments to inputs of ``main``, its results back.

A *tree* says what stands where, as plain data that goes to JSON: ``("leaf", i)`` is input or output
``i``; ``("value", v)`` a Python value (None, number, text) that the model was compiled for, which a
caller has to pass again; ``("tuple", trees)``, ``("list", trees)``, ``("dict", keys, trees)`` and
``("object", "module:Class", keys, trees)``, for named tuples, data classes and what a framework
registered, hold others. Errors name a place as the caller writes it: ``x``, ``batch['ids'][1]``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from weft.runtime.extent import is_within
from weft.support.errors import IRTypeError, IRValueError

Tree = tuple[Any, ...]
"""See the module's text."""

ABSENT: Final = ("absent",)
"""The tree of a parameter that the model was compiled without; its own default holds."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of the model's own call.

    ``by`` says how it may be given: ``position``, ``keyword`` or ``either``. ``default`` is the
    value of a parameter that may be left out, as a tree of values.
    """

    name: str
    tree: Tree
    by: str = "either"
    default: Tree | None = None


@dataclass(frozen=True)
class State:
    """A tensor that lives in the model and that a call changes: input and output numbers."""

    name: str
    input: int
    output: int


@dataclass(frozen=True)
class Signature:
    """How a model is called.

    ``name`` stands in errors. ``inputs`` are the places of the inputs of ``main``, as the caller
    writes them; ``result`` is the tree of what the model returns over the outputs of ``main``.
    ``ranges`` are the least and the greatest value of symbols (None: no limit). ``states`` are
    tensors that calls change; ``written`` the inputs that a call changes in place, with the output
    that has their new value. ``source`` is the framework that the model is from, where calls
    depend on it: tensors of ``"torch"`` come out where no input tells, and errors say how extents
    of ``"onnx"`` are named; else it is empty. ``unpacked``: ``main`` returns a tuple of the
    outputs; else what it returns is output 0. ``texts`` are the extents of inputs that are text,
    numbers and names, by their place: their parameters are objects, which tell no shape.
    """

    name: str
    parameters: tuple[Parameter, ...]
    inputs: tuple[str, ...]
    result: Tree
    ranges: tuple[tuple[str, int | None, int | None], ...] = ()
    states: tuple[State, ...] = ()
    written: tuple[tuple[int, int], ...] = ()
    source: str = ""
    unpacked: bool = False
    texts: tuple[tuple[int, tuple[int | str, ...]], ...] = ()

    @staticmethod
    def plain(name: str, inputs: Sequence[str], **options: Any) -> Signature:
        """The signature of a model whose arguments are its inputs and whose result its output.

        ``options`` are further fields, or another ``result``.
        """
        parameters = [Parameter(item, ("leaf", index)) for index, item in enumerate(inputs)]
        result = options.pop("result", ("leaf", 0))
        return Signature(name, tuple(parameters), tuple(inputs), result, **options)

    @property
    def is_plain(self) -> bool:
        """Whether the arguments by position are the inputs, one for one."""
        return not self.states and all(
            parameter.tree == ("leaf", index) and parameter.by != "keyword"
            for index, parameter in enumerate(self.parameters)
        )

    def flatten(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
        """The inputs of ``main`` from the arguments of a call; None where a state belongs.

        Raises IRTypeError for a wrong number, name or structure, IRValueError for a Python value
        that is not the one that the model was compiled for.
        """
        inputs: list[object] = [None] * len(self.inputs)
        for parameter, value in self._bound(args, kwargs):
            flatten_into(parameter.tree, value, parameter.name, self.name, inputs)
        return inputs

    def _bound(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Iterator[tuple[Parameter, object]]:
        by_position = [item for item in self.parameters if item.by != "keyword"]
        if len(args) > len(by_position):
            raise self._count_error(f"got {len(args)} by position")
        left = dict(kwargs)
        for parameter, value in zip(by_position, args, strict=False):
            if parameter.name in left and parameter.by == "either":
                raise IRTypeError(f"{self.name}: argument {parameter.name} is given twice")
            yield parameter, value
        missing = []
        done = {id(parameter) for parameter in by_position[: len(args)]}
        for parameter in self.parameters:
            if id(parameter) in done:
                continue
            if parameter.name in left and parameter.by != "position":
                yield parameter, left.pop(parameter.name)
            elif parameter.default is not None:
                if parameter.tree != ABSENT:
                    yield parameter, rebuild(parameter.default, ())
            else:
                missing.append(parameter.name)
        if left:
            raise self._count_error(f"got the keyword{_s(left)} {', '.join(map(str, left))}")
        if missing:
            raise self._count_error(f"missing {', '.join(missing)}")

    def _count_error(self, given: str) -> IRTypeError:
        names = ", ".join([str(item.name) for item in self.parameters]) or "none"
        return IRTypeError(
            f"{self.name}: expected the argument{_s(self.parameters)} ({names}), {given}"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain lists, numbers and texts."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Signature:
        """What ``to_json`` made, also after a trip through JSON text."""
        return Signature(
            name=data["name"],
            parameters=tuple(
                [
                    Parameter(
                        item["name"],
                        tree_from_json(item["tree"]),
                        item["by"],
                        None if item["default"] is None else tree_from_json(item["default"]),
                    )
                    for item in data["parameters"]
                ]
            ),
            inputs=tuple(data["inputs"]),
            result=tree_from_json(data["result"]),
            ranges=tuple([tuple(item) for item in data["ranges"]]),
            states=tuple([State(**item) for item in data["states"]]),
            written=tuple([tuple(item) for item in data["written"]]),
            source=data["source"],
            unpacked=data["unpacked"],
            texts=tuple([(place, tuple(extents)) for place, extents in data.get("texts", ())]),
        )


def _s(items: Collection[object]) -> str:
    return "" if len(items) == 1 else "s"


def tree_from_json(data: Any) -> Tree:
    """A tree whose tuples became lists."""
    kind = data[0]
    if kind in ("tuple", "list"):
        return (kind, tuple([tree_from_json(item) for item in data[1]]))
    if kind in ("dict", "texts", "maps"):
        return (kind, tuple(data[1]), tuple([tree_from_json(item) for item in data[2]]))
    if kind == "object":
        items = tuple([tree_from_json(item) for item in data[3]])
        return (kind, data[1], tuple(data[2]), items)
    return tuple(data)


def fields_of(tree: Tree) -> Iterator[tuple[str, str | int, Tree]]:
    """The parts of a tree: how a caller writes the way to it, its key, itself."""
    kind = tree[0]
    if kind in ("tuple", "list"):
        for index, item in enumerate(tree[1]):
            yield f"[{index}]", index, item
    elif kind == "dict":
        for key, item in zip(tree[1], tree[2], strict=True):
            yield f"[{key!r}]", key, item
    elif kind == "object":
        for key, item in zip(tree[2], tree[3], strict=True):
            yield f".{key}", key, item
    elif kind in ("texts", "maps"):
        yield "", "", tree[2][0]


def places(tree: Tree, where: str) -> Iterator[tuple[int, str]]:
    """The leaves of a tree: their numbers, and where they are from ``where`` on."""
    if tree[0] == "leaf":
        yield tree[1], where
    for way, _, item in fields_of(tree):
        yield from places(item, where + way)


def flatten_into(tree: Tree, value: object, where: str, model: str, leaves: list[object]) -> None:
    """Append the leaves of ``value`` to ``leaves``; raise where its form is not the tree's."""
    kind = tree[0]
    if kind == "leaf":
        if value is None:
            raise IRTypeError(f"{model}: argument {where}: expected a tensor, got None")
        leaves[tree[1]] = value
    elif kind in ("value", "absent"):
        _check_value(tree, value, where, model)
    else:
        items = _opened(tree, value, where, model)
        for (way, _, item), part in zip(fields_of(tree), items, strict=True):
            flatten_into(item, part, where + way, model, leaves)


def _check_value(tree: Tree, value: object, where: str, model: str) -> None:
    wanted = tree[1] if tree[0] == "value" else None
    same = value is wanted or (
        type(value) in (bool, int, float, str)
        and isinstance(value, str) == isinstance(wanted, str)
        and (value == wanted or (value != value and wanted != wanted))
    )
    if not same:
        shown = repr(value) if isinstance(value, bool | int | float | str) else type(value).__name__
        compiled = f"{wanted!r} there" if wanted is not None else "it left out"
        raise IRValueError(
            f"{model}: argument {where}: the model was compiled with {compiled}, got {shown[:40]}; "
            "compile it again with that as an example input"
        )


def _opened(tree: Tree, value: object, where: str, model: str) -> list[object]:
    """The parts of a container, in the order of the tree."""
    kind = tree[0]
    keys = [key for _, key, _ in fields_of(tree)]
    if kind in ("tuple", "list"):
        if not isinstance(value, tuple | list):
            raise _form_error(model, where, f"a {kind} of {len(keys)}", type(value).__name__)
        if len(value) != len(keys):
            raise _form_error(model, where, f"a {kind} of {len(keys)}", f"one of {len(value)}")
        return list(value)
    if isinstance(value, Mapping):
        if set(value) != set(keys):
            raise _form_error(model, where, f"the keys {_listed(keys)}", _listed(value))
        return [value[key] for key in keys]
    if kind == "dict":
        raise _form_error(model, where, f"a dict of {_listed(keys)}", type(value).__name__)
    if not all(hasattr(value, str(key)) for key in keys):
        name = tree[1].rpartition(":")[2]
        raise _form_error(model, where, f"a {name} of {_listed(keys)}", type(value).__name__)
    return [getattr(value, str(key)) for key in keys]


def _listed(keys: Iterable[object]) -> str:
    names = [str(key) for key in keys]
    return ", ".join(names[:8]) + (" ..." if names[8:] else "") if names else "nothing"


def _form_error(model: str, where: str, wanted: str, given: str) -> IRTypeError:
    return IRTypeError(f"{model}: argument {where}: expected {wanted}, got {given}")


def rebuild(tree: Tree, leaves: Sequence[object]) -> Any:
    """The structure of a tree with these leaves."""
    kind = tree[0]
    if kind == "leaf":
        if tree[1] >= len(leaves):
            raise IRValueError(f"expected output {tree[1]} of the model, which has {len(leaves)}")
        return leaves[tree[1]]
    if kind in ("value", "absent"):
        return tree[1] if kind == "value" else None
    items = [rebuild(item, leaves) for _, _, item in fields_of(tree)]
    if kind == "tuple":
        return tuple(items)
    if kind == "list":
        return items
    if kind == "dict":
        return dict(zip(tree[1], items, strict=True))
    if kind == "texts":
        return np.array(tree[1])[np.asarray(items[0])]
    if kind == "maps":
        return [dict(zip(tree[1], row, strict=True)) for row in np.asarray(items[0]).tolist()]
    return _object(tree[1], tree[2], items)


class Record(dict[str, Any]):
    """The fields of an object whose class is not loaded in this process: ``r["x"]`` or ``r.x``."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this record has {', '.join(self)}, no {name!r}") from None


def _object(path: str, keys: Sequence[str], items: Sequence[object]) -> object:
    """An object of a class that this process has loaded, else a Record; nothing is imported."""
    module, _, name = path.partition(":")
    kind: object = sys.modules.get(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or issubclass(kind, Mapping) or hasattr(kind, "_fields")
    ):
        with suppress(TypeError):  # the class has other fields by now
            return kind(**dict(zip(keys, items, strict=True)))
    return Record(zip(keys, items, strict=True))


def tree_of(value: object, leaf: Callable[[object], Tree]) -> Tree:
    """The tree of a nested value; ``leaf`` gives the trees of what is no container."""
    if value is None or isinstance(value, bool | int | float | str):
        return leaf(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _object_tree(value, value._fields, list(value), leaf)
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return (kind, tuple([tree_of(item, leaf) for item in value]))
    if type(value) is dict:
        return ("dict", tuple(value), tuple([tree_of(item, leaf) for item in value.values()]))
    if isinstance(value, Mapping):
        return _object_tree(value, list(value), list(value.values()), leaf)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return _object_tree(value, names, [getattr(value, name) for name in names], leaf)
    return leaf(value)


def _object_tree(
    value: object, keys: Sequence[str], items: Sequence[object], leaf: Callable[[object], Tree]
) -> Tree:
    path = f"{type(value).__module__}:{type(value).__qualname__}"
    return ("object", path, tuple(keys), tuple([tree_of(item, leaf) for item in items]))


def check_range(where: str, value: int, low: int | None, high: int | None) -> None:
    """Raise IRValueError for an extent outside of the range that the model was compiled for."""
    if not is_within(value, low, high):
        raise IRValueError(
            f"{where} is {value}, and the model was compiled for {range_text(low, high)}; compile "
            "it again with another range"
        )


def range_text(low: int | None, high: int | None) -> str:
    """The words for a range: ``(2, 64)`` -> ``2 to 64``, ``(2, None)`` -> ``at least 2``."""
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"
