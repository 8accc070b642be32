"""``@node``: the one way to declare an IR node (design.md 3.1).

A node class lists its fields as annotations. From them the decorator lays out ``__slots__`` and
generates a plain ``__init__`` (fields in order, ``span`` last), ``with_``, and the tables that
visitors, mutators, structural equality and printing read::

    @node
    class Add(PrimExpr):
        a: PrimExpr
        b: PrimExpr
        dtype: DataType = derived()

        def _check_(self) -> None:
            ...  # may raise, and fills the derived fields

Kinds of field, chosen by ``field(...)`` or ``derived()`` in the place of a default:

- plain: a constructor argument that takes part in structural equality and in traversal;
- ``defines=True``: variables inside are *definitions* (a loop variable, a parameter);
- ``compare=False``: carried, but ignored by structural equality and hash;
- ``visit=False``: not a child (traversals skip it), still compared;
- ``derived()``: no constructor argument; computed in ``_check_``; neither compared nor visited.

Sequences become ``Array`` and mappings ``Map``; a field annotated ``PrimExpr`` takes Python
numbers too. Nodes are immutable by convention (the type checker enforces it, the runtime does not);
facts derived later are cached in ``_cache``, and a summary of what is below in ``_summary``
(``weft.ir.summary``). Equality and hash are identity unless a class says otherwise. A copy of a
node is the node itself; a pickled node is the JSON of ``weft.ir.json_text``.

Node classes are made twice, as those of ``dataclass(slots=True)`` are, and have no metaclass:
``isinstance`` with a class of another metaclass than ``type`` takes 2.5 times as long, and a
compilation asks it ten million times. Nor have they ``__getattr__``, with which Python 3.11 looks
up every attribute in six times the time (both by ``benchmarks/nodes.py``): attributes of other
releases are descriptors.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Protocol,
    Self,
    SupportsIndex,
    TypeVar,
    cast,
    overload,
)

from weft.ir.node_code import MISSING, FieldSpec, write_init, write_parts, write_rebuilt
from weft.support import slots
from weft.support.errors import IRTypeError, wrong_type
from weft.support.span import Span

E = TypeVar("E")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Array(tuple[E, ...]):
    """A sequence in a node: a tuple that prints as ``[...]`` and concatenates with any sequence."""

    __slots__ = ()

    def __add__(self, other: Iterable[T]) -> Array[E | T]:
        return Array((*self, *other))

    def __radd__(self, other: Iterable[T]) -> Array[T | E]:
        return Array((*other, *self))

    @overload
    def __getitem__(self, index: SupportsIndex) -> E: ...
    @overload
    def __getitem__(self, index: slice) -> Array[E]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> E | Array[E]:
        if isinstance(index, slice):
            return Array(tuple.__getitem__(self, index))
        return tuple.__getitem__(self, index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple)) or len(self) != len(other):
            return False
        return all(mine is its or bool(mine == its) for mine, its in zip(self, other, strict=True))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __repr__(self) -> str:
        return f"[{', '.join([repr(item) for item in self])}]"

    __str__ = __repr__

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other


class Map(dict[K, V]):
    """A mapping in a node: a dict that is not changed after construction.

    String keys are plain ``str``. ``items()`` keep insertion order.
    """

    __slots__ = ()

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other


def expect(value: object, kind: type[E]) -> E:
    """``value``, which has to be a ``kind``: for arguments whose class the operator determines.

    >>> expect(3, int)
    3
    """
    if not isinstance(value, kind):
        raise IRTypeError(f"expected a {kind.__name__}, got {type(value).__name__}: {value}")
    return value


def field(
    *,
    default: object = MISSING,
    defines: bool = False,
    compare: bool = True,
    visit: bool = True,
    takes_none: bool = False,
    stored: str = "",
) -> Any:
    """Describe a field of another kind than plain (see the module's docstring).

    ``stored`` is an annotation of what it holds, for a class whose level cannot import the names.
    """
    return FieldSpec("", "", default, defines, compare, visit, takes_none=takes_none, stored=stored)


def derived(*, stored: str = "") -> Any:
    """Describe a slot that ``_check_`` fills and that is no constructor argument."""
    return FieldSpec("", "", derived=True, compare=False, visit=False, stored=stored)


def cached_by_class(function: Callable[[type], V]) -> Callable[[type], V]:
    """``functools.cache`` for a function of a class (which mypy takes for not hashable there)."""
    return functools.cache(function)


class OldAttribute:
    """An attribute of another release: a function of the node, which is imported when asked for."""

    __slots__ = ("adapter",)

    def __init__(self, adapter: str) -> None:
        self.adapter = adapter

    def __get__(self, node: object, _kind: type) -> object:
        if node is None:
            return self
        module, _, function = self.adapter.partition(":")
        return getattr(importlib.import_module(module), function)(node)


NODE_CLASSES: Final[list[type]] = []
"""Every class of nodes, those too that are only bases, in the order of their declaration."""


def with_slots(cls: T) -> T:
    """The class again with ``__slots__``, for the base of node classes that is no node itself.

    Annotated names become slots, their defaults move to ``_own_``. A property in the place of a
    base's slot is computed when asked for: nothing copies or stores it.
    """
    assert isinstance(cls, type)
    namespace = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    inherited = {slot for base in cls.__bases__ for slot in getattr(base, "_all_slots_", ())}
    own: list[FieldSpec] = []
    for key, annotation in namespace.get("__annotations__", {}).items():
        text = annotation if isinstance(annotation, str) else str(annotation)
        if not text.startswith("ClassVar"):
            own.append(_spec(key, text, namespace.pop(key, MISSING)))
    extra = namespace.pop("_extra_slots_", ())
    fresh = [spec.name for spec in own if spec.name not in inherited | set(extra)]
    namespace["__slots__"] = (*fresh, *extra)
    computed = {name for name, value in namespace.items() if isinstance(value, property)}
    namespace["_all_slots_"] = (inherited | set(fresh) | set(extra)) - computed
    namespace["_own_"] = tuple(own)
    for old, adapter in slots.old_attributes.get()(f"{cls.__module__}.{cls.__qualname__}").items():
        namespace[old] = OldAttribute(adapter)
    slotted = type(cls)(cls.__name__, cls.__bases__, namespace)
    NODE_CLASSES.append(slotted)
    _let_super_mean(slotted)
    return cast(T, slotted)


def _spec(name: str, annotation: str, given: object) -> FieldSpec:
    if isinstance(given, FieldSpec):
        return replace(given, name=name, annotation=annotation)
    return FieldSpec(name, annotation, given)


def _let_super_mean(cls: type) -> None:
    """Let ``super()`` in methods of a class that was made again mean the new class."""
    for value in vars(cls).values():
        function = inspect.unwrap(getattr(value, "fget", None) or getattr(value, "__func__", value))
        if isinstance(function, FunctionType):
            names = function.__code__.co_freevars
            if "__class__" in names and function.__closure__ is not None:
                function.__closure__[names.index("__class__")].cell_contents = cls


Visit = Callable[[Any], Any]
"""What a mutator makes of a node, a sequence or a mapping."""


@with_slots
class Node:
    """The base of everything in both IRs."""

    _extra_slots_: ClassVar[tuple[str, ...]] = ("_cache", "_summary", "span", "__weakref__")
    _all_slots_: ClassVar[set[str]]
    """Names of all slots, inherited ones too; set by ``with_slots``."""
    KIND: ClassVar[str] = "Node"
    """The name that visitors dispatch on: the class name, unless both IRs have that name."""
    FIELDS: ClassVar[tuple[FieldSpec, ...]] = ()
    """Every field in declaration order, inherited ones first."""
    INIT_FIELDS: ClassVar[tuple[str, ...]] = ()
    """Names of the constructor's arguments, in order, without ``span``."""
    CHILDREN: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that traversals enter."""
    STRUCTURE: ClassVar[tuple[tuple[str, bool], ...]] = ()
    """``(field, defines)`` in the order in which structural equality and hash take them."""
    IS_OPEN: ClassVar[bool] = False
    """Whether children may be set after construction, as the struct info of graphs is."""
    IS_IDENTIFIED: ClassVar[bool] = False
    """Whether objects of the class have bits of their own in summaries: variables, buffers."""
    BIT: ClassVar[int] = 0
    """The bit of the class in the summaries of ``weft.ir.summary``; -1 (all) if it is open."""

    _cache: dict[Hashable, Any] | None
    _summary: int
    span: Span | None

    if TYPE_CHECKING:
        # The generated constructors convert their arguments (numbers, lists, dicts), which a type
        # checker's dataclass transform cannot express; fields keep their annotated types.
        def __init__(self, *args: object, **kwargs: object) -> None: ...

    def _check_(self) -> None:
        """Validate the fields and fill the derived ones; called at the end of ``__init__``."""

    def same_as(self, other: object) -> bool:
        """Whether both are the same object."""
        return self is other

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        text = importlib.import_module("weft.ir.json_text")  # which imports this module
        return text.load_json, (text.save_json(self),)

    def with_(self, **changes: object) -> Self:
        """A copy with some fields changed; ``self`` if every new value is the old object."""
        for name, value in changes.items():
            if getattr(self, name, MISSING) is not value:
                break
        else:
            return self
        args = [
            changes.pop(name) if name in changes else getattr(self, name)
            for name in self.INIT_FIELDS
        ]
        if changes:
            raise IRTypeError(f"{type(self).__name__} has no field {', '.join(sorted(changes))}")
        copy = type(self)(*args, span=self.span)
        self._carry_(copy)
        return copy

    def _carry_(self, copy: Self) -> None:
        """Hook: give ``copy`` the derived facts that stay true when fields change."""

    def _parts_(self) -> tuple[Node, ...]:
        """The nodes right below, from left to right; ``@node`` writes it."""
        return ()

    def _rebuilt_(self, visit: Visit, walk: Walk) -> Self:  # noqa: ARG002 - a leaf
        """The node with visited children, but those that ``walk`` skips; ``@node`` writes it."""
        return self

    def script(self, **config: object) -> str:
        """The node as TVMScript text (options: weft.script.printer)."""
        return str(slots.text.get().to_text(self, **config))

    def show(self, *args: object, **config: object) -> None:
        """Print the node's script, highlighted where the terminal or notebook can."""
        slots.text.get().show(self, *args, **config)

    def __repr__(self) -> str:
        return str(slots.text.get().to_repr(self))

    def __str__(self) -> str:
        return str(slots.text.get().to_repr(self))

    def _repr_html_(self) -> str | None:
        """The script as highlighted HTML, for notebooks; None, so its repr, where it has none."""
        page: str | None = slots.text.get().to_html(self)
        return page


class Walk(Protocol):
    """What ``_rebuilt_`` asks of a mutator."""

    @property
    def ignored(self) -> int:
        """Parts with no other bits than these (``weft.ir.summary``) stay as they are."""


NODE_TYPES: Final[dict[str, type[Node]]] = {}
"""KIND -> class of every declared node; visitors check their method names against it."""

IDENTITY_BITS: Final = 61
"""How many low bits of a summary are for variables and buffers; a prime."""
_bits: Final = itertools.count(IDENTITY_BITS)
C = TypeVar("C", bound=type[Node])
N = TypeVar("N", bound=Node)


def node(cls: C) -> C:
    """Generate the constructor and the field tables of a node class (module docstring)."""
    cls = with_slots(cls)
    by_name: dict[str, FieldSpec] = {}
    for base in reversed(cls.__mro__):
        for spec in base.__dict__.get("_own_", ()):
            if spec.name not in ("_cache", "_summary", "span"):
                by_name.pop(spec.name, None)  # the subclass determines its place in the order
                by_name[spec.name] = spec
    cls.FIELDS = tuple(by_name.values())
    arguments = [spec for spec in cls.FIELDS if not spec.derived]
    cls.INIT_FIELDS = tuple(spec.name for spec in arguments)
    cls.CHILDREN = tuple(
        spec.name for spec in arguments if spec.visit and _holds_nodes(spec.annotation)
    )
    if "KIND" not in cls.__dict__:
        cls.KIND = cls.__name__
    if "STRUCTURE" not in cls.__dict__:
        cls.STRUCTURE = tuple((spec.name, spec.defines) for spec in arguments if spec.compare)
    if "__init__" not in cls.__dict__:
        write_init(cls, arguments, _NAMES, checks=cls._check_ is not Node._check_)
    children = [spec for spec in arguments if spec.name in cls.CHILDREN]
    write_parts(cls, children, _NAMES)
    write_rebuilt(cls, arguments, children, _NAMES, by_with=cls.with_ is not Node.with_)
    cls.BIT = -1 if cls.IS_OPEN else 1 << next(_bits)
    NODE_TYPES[cls.KIND] = cls
    return cls


_VALUES: Final = frozenset(
    {"str", "int", "bool", "float", "DataType", "object", "ForKind", "IterType", "Any", "bytes"}
)


def _holds_nodes(annotation: str) -> bool:
    parts = annotation.replace("|", " ").replace("[", " ").replace("]", " ").replace(",", " ")
    names = [part for part in parts.split() if part not in ("None", "Array", "Map", "tuple")]
    return not names or any(name not in _VALUES for name in names)


def _as_array(items: object, kind: type[E], convert: Callable[[object], E]) -> Array[E]:
    """An Array of ``kind``; the same one if it is one already."""
    if type(items) is Array:
        for item in items:
            if not isinstance(item, kind):
                break
        else:
            return items
    return Array([item if isinstance(item, kind) else convert(item) for item in _sequence(items)])


def _sequence(items: object) -> Iterable[object]:
    """``items`` themselves; IRTypeError for what is no sequence."""
    if not isinstance(items, Iterable):
        raise wrong_type("expected a list or tuple", items)
    return items


def freeze(value: object) -> Any:
    """Attribute values as nodes store them: list to Array, dict to Map, recursively."""
    if isinstance(value, (Array, Map, Node)):
        return value
    if isinstance(value, (list, tuple)):
        return Array([freeze(item) for item in value])
    if isinstance(value, Mapping):
        return Map({key: freeze(item) for key, item in value.items()})
    return value


def summary_of(node: Node) -> int:
    """The bits of everything in a node. Callers look at ``node._summary`` first: it is not 0 later.

    -1, all bits, for a node whose children may change (a module).
    """
    summary = type(node).BIT
    if node.IS_IDENTIFIED:
        summary |= 1 << (id(node) >> 4) % IDENTITY_BITS
    if summary != -1:
        for part in node._parts_():
            summary |= part._summary or summary_of(part)
    node._summary = summary
    return summary


def fact(node: N, key: str, compute: Callable[[N], T]) -> T:
    """The fact ``key`` of a node whose children never change, computed once and kept with it."""
    cache = node._cache
    if cache is None:
        cache = node._cache = {}
    known: T | None = cache.get(key)
    if known is None:
        known = cache[key] = compute(node)
    return known


def nodes_in(value: object) -> Sequence[Node]:
    """The nodes in a sequence or mapping, through those in it; a node by itself is one."""
    if isinstance(value, Node):
        return (value,)
    if isinstance(value, dict):
        value = list(value.values())
    elif not isinstance(value, (tuple, list)):
        return ()
    nodes: list[Node] = []
    for item in value:
        if isinstance(item, Node):
            nodes.append(item)
        else:
            nodes += nodes_in(item)
    return nodes


def rebuilt_items(items: Sequence[E] | None, visit: Visit, walk: Walk) -> Any:
    """A sequence with visited items, an Array; the same object if none changed."""
    changed: list[object] | None = None
    for place, item in enumerate(items or ()):
        if isinstance(item, Node):
            ignored = walk.ignored
            if (item._summary or summary_of(item)) | ignored == ignored:
                continue
        new = visit(item)
        if new is not item:
            if changed is None:
                changed = list(items or ())
            changed[place] = new
    return items if changed is None else Array(changed)


_NAMES: Final[dict[str, object]] = {
    "Array": Array,
    "Map": Map,
    "Node": Node,
    "as_array": _as_array,
    "nodes_in": nodes_in,
    "rebuilt_items": rebuilt_items,
    "sequence": _sequence,
    "summary_of": summary_of,
}
"""What the methods refer to that ``@node`` writes."""
