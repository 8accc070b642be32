"""Undoes what a forward pass does to its module while torch traces it on stand-ins for tensors.

A forward pass may append to a list, count its calls or set an attribute of an object that the
module holds; what is the user's would then keep stand-ins. So the state of the module is noted
before the trace and put back after it: the attributes of modules, of their classes and of other
objects, and the content of lists, dicts, sets and queues, at any depth. Objects of torch, numpy and
the standard library are left alone, since others use them, too; so is what only globals reach.
"""

from __future__ import annotations

import argparse
import sys
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MemberDescriptorType, SimpleNamespace
from typing import Any, Final

import torch
from torch.nn.parameter import is_lazy

_DICTS: Final = (OrderedDict, defaultdict, dict)
_SEQUENCES: Final = (list, deque)
_LEAVES: Final = (str, bytes, int, float, complex, type(None), torch.Tensor, torch.dtype)
_FOREIGN: Final = frozenset({*sys.stdlib_module_names, "numpy", "torch", "weft"})
"""Packages whose objects are not looked into."""
_PLAIN: Final = (argparse.Namespace, SimpleNamespace)
"""Classes of the standard library whose objects have no state but what the user puts there."""
_MOST: Final = 1_000_000
"""Values that are looked at, those nearest to the module first: a model may refer to its data."""


@contextmanager
def untouched(model: torch.nn.Module) -> Iterator[Callable[[], None]]:
    """Put back, at the end, the state of a module and of what it holds.

    The value is a function that does so before, for another try.
    """
    is_module = isinstance(model, torch.nn.Module)
    if not is_module or any(map(is_lazy, [*model.parameters(), *model.buffers()])):
        yield lambda: None  # a lazy module becomes another one at its first call
        return
    state = noted_state(model)
    try:
        yield state.restore
    finally:
        state.restore()


def noted_state(model: torch.nn.Module) -> State:
    """What a module and all that it holds are at present, to be put back."""
    modules = [*model.modules()]
    return State([*map(vars, modules), *modules])


def attributes_of(value: object) -> dict[str, object]:
    """What an object of a class of the user's keeps in attributes; nothing for other values."""
    kind = type(value)
    if isinstance(value, type) or not _is_users(kind):
        return {}
    slots = {name: getattr(value, name, _UNSET) for name in _slots(kind)}
    own = getattr(value, "__dict__", None)
    return {**slots, **(own if isinstance(own, dict) else {})}


class State:
    """What containers, objects and classes held, by their ``id``."""

    def __init__(self, roots: list[Any]) -> None:
        self.seen: dict[int, object] = {}  # keeps the objects alive, so that no id is used twice
        self.dicts: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        self.sequences: list[tuple[list[Any] | deque[Any], list[Any]]] = []
        self.sets: list[tuple[set[Any], set[Any]]] = []
        self.attributes: list[tuple[object, dict[str, Any]]] = []
        self.note(roots)

    def note(self, roots: list[Any]) -> None:
        """Note what the values and those within them hold."""
        left = deque(roots)
        while left and len(self.seen) < _MOST:
            value = left.popleft()
            if not isinstance(value, _LEAVES) and id(value) not in self.seen:
                self.seen[id(value)] = value
                left.extend(self._content(value))

    def _content(self, value: Any) -> list[Any]:
        """The values within a value, after they were noted if others can take their place."""
        if isinstance(value, dict):
            items = dict(_base(value, _DICTS).items(value))
            self.dicts.append((value, items))
            content = [*items.values()]
        elif isinstance(value, list | deque):
            content = [*_base(value, _SEQUENCES).__iter__(value)]
            self.sequences.append((value, content))
        elif isinstance(value, set):
            self.sets.append((value, {*set.__iter__(value)}))
            content = [*set.__iter__(value)]
        else:
            content = [*value] if type(value) is tuple else []
        return content + self._attributes_of(value)

    def _attributes_of(self, value: Any) -> list[Any]:
        """The attributes of an object, or of a class, of the user's."""
        kind = value if isinstance(value, type) else type(value)
        if not _is_users(kind):
            return []
        if isinstance(value, type):
            attributes = _own(value)
        else:
            attributes = {name: getattr(value, name, _UNSET) for name in _slots(kind)}
        self.attributes.append((value, attributes))
        own = getattr(value, "__dict__", None)
        return [*kind.__mro__, *attributes.values(), *([own] if isinstance(own, dict) else [])]

    def restore(self) -> None:
        """Make everything hold what it held, in place; what did not change is not written to."""
        for items, before in self.dicts:
            _restore_dict(items, before)
        for sequence, content in self.sequences:
            _restore_sequence(sequence, content)
        for elements, held in self.sets:
            set.intersection_update(elements, held)
            set.update(elements, held)
        for owner, attributes in self.attributes:
            _restore_attributes(owner, attributes)


_UNSET: Final = object()


def _is_users(kind: type) -> bool:
    return kind in _PLAIN or str(kind.__module__).partition(".")[0] not in _FOREIGN


def _own(kind: type) -> dict[str, Any]:
    """The attributes of a class without those that Python itself sets, some when they are read."""
    return {name: value for name, value in vars(kind).items() if not name.startswith("__")}


def _slots(kind: type) -> list[str]:
    """The names of the attributes that objects of a class keep outside of their ``__dict__``."""
    return [
        name
        for base in kind.__mro__
        if _is_users(base)
        for name, member in vars(base).items()
        if isinstance(member, MemberDescriptorType)
    ]


def _base(value: object, kinds: tuple[type, ...]) -> Any:
    """The class among ``kinds`` whose methods a subclass of the user's may have replaced."""
    return next(kind for kind in kinds if isinstance(value, kind))


def _restore_dict(items: dict[Any, Any], before: dict[Any, Any]) -> None:
    base = _base(items, _DICTS)
    for key in [key for key in base.keys(items) if key not in before]:
        base.__delitem__(items, key)
    if [*base.keys(items)] != [*before]:  # a key went, or came back at another place
        base.clear(items)
    for key, value in before.items():
        if dict.get(items, key, _UNSET) is not value:
            base.__setitem__(items, key, value)


def _restore_sequence(sequence: list[Any] | deque[Any], content: list[Any]) -> None:
    base = _base(sequence, _SEQUENCES)
    if [*map(id, base.__iter__(sequence))] != [*map(id, content)]:
        base.clear(sequence)
        base.extend(sequence, content)


def _restore_attributes(owner: object, before: dict[str, Any]) -> None:
    """Set the attributes past ``__setattr__`` of the user's, which may refuse or count that."""
    base: Any = type if isinstance(owner, type) else object
    present = {name: getattr(owner, name, _UNSET) for name in before}
    if isinstance(owner, type):
        present = _own(owner)
    for name in present.keys() | before.keys():
        held = before.get(name, _UNSET)
        if present.get(name, _UNSET) is held:
            continue
        if held is _UNSET:
            base.__delattr__(owner, name)
        else:
            base.__setattr__(owner, name, held)
