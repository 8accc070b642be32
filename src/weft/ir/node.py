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
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, SupportsIndex, TypeVar, cast, overload

from weft.support import slots
from weft.support.errors import IRTypeError, wrong_type
from weft.support.span import Span

MISSING: Final = object()
E = TypeVar("E")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


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


NODE_TYPES: Final[dict[str, type[Node]]] = {}
"""KIND -> class of every declared node; visitors check their method names against it."""

IDENTITY_BITS: Final = 61
"""How many low bits of a summary are for variables and buffers; a prime."""
_bits: Final = itertools.count(IDENTITY_BITS)
C = TypeVar("C", bound=type[Node])


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
        _generate_init(cls, arguments)
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


def _generate_init(cls: type[Node], arguments: list[FieldSpec]) -> None:
    """Write and compile ``__init__``: conversions by annotation, then the ``_check_`` hook."""
    scope: dict[str, Any] = {
        "Array": Array,
        "Map": Map,
        "as_array": _as_array,
        "sequence": _sequence,
    }
    for kind, (accepted, converter) in CONVERSIONS.items():
        scope[kind], scope[f"as_{kind}"] = accepted, converter
    parameters, lines = ["self"], []
    for spec in arguments:
        default = ""
        if spec.default is not MISSING:
            scope[f"_default_{spec.name}"] = spec.default
            default = f"=_default_{spec.name}"
        parameters.append(f"{spec.name}{default}")
        lines.append(f"    self.{spec.name} = {_conversion(spec)}")
    parameters.append("span=None")
    lines += ["    self.span = span", "    self._cache = None", "    self._summary = 0"]
    if cls._check_ is not Node._check_:
        lines.append("    self._check_()")
    source = "\n".join([f"def __init__({', '.join(parameters)}):", *lines])
    exec(compile(source, f"<{cls.__name__}.__init__>", "exec"), scope)  # noqa: S102 - ours
    init: Callable[..., None] = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    cls.__init__ = init  # type: ignore[method-assign] # what the decorator is for


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


Converter = Callable[[Any], object]
"""A function from a constructor's argument to what the field holds."""

CONVERSIONS: Final[dict[str, tuple[type, Converter]]] = {}
"""Annotation name -> (class, conversion of anything else to it), for constructor arguments."""


def register_conversion(kind: str, accepted: type, converter: Converter) -> None:
    """Let fields annotated ``kind`` (or ``Array[kind]``) take what ``converter`` converts."""
    CONVERSIONS[kind] = (accepted, converter)


def freeze(value: object) -> Any:
    """Attribute values as nodes store them: list to Array, dict to Map, recursively."""
    if isinstance(value, (Array, Map, Node)):
        return value
    if isinstance(value, (list, tuple)):
        return Array([freeze(item) for item in value])
    if isinstance(value, Mapping):
        return Map({key: freeze(item) for key, item in value.items()})
    return value
