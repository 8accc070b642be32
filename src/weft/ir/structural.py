"""Structural equality and hash of nodes, and the first place where two programs differ.

Two programs are equal when their nodes agree field by field (``Node.STRUCTURE``). Variables are
compared through a mapping that grows where fields *define* variables (loop variables, parameters,
buffers); with ``map_free_vars`` free variables map too. A variable that two places share on one
side must be shared by the same places on the other.

The hash agrees with equality, for both take the fields from ``compared_fields``. Variables hash by
the order in which they are met. Every part is delimited, so that two different programs without
free variables never feed the same bytes. A long expression is replaced by its own digest, so that
an object that stands in many places is hashed once.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.ir.difference_report import difference_report
from weft.ir.node import Node
from weft.ir.node_code import MISSING
from weft.ir.sharing import is_compared_once
from weft.support.errors import IRValueError
from weft.support.object_path import ObjectPath
from weft.support.recursion import deep_recursion

VARIABLE_KINDS: set[str] = {"Var", "SizeVar", "RelaxVar", "DataflowVar"}
"""Kinds of nodes that are compared through the mapping."""
MAPPED_KINDS: set[str] = {"Buffer"}
"""Kinds that are compared by structure once; after that, both have to occur as the same pair."""
CLOSED_KINDS: set[str] = {"PrimFunc", "Op", "PrimType", "IntImm", "FloatImm", "StringImm"}
"""Kinds without free variables: the same object on both sides is equal in any context."""

_LONG: Final = 64
"""An expression of more bytes is replaced by its digest."""
_OF_VARIABLES: Final = (("dtype", False), ("type_annotation", False), ("struct_info", False))
"""The fields of a variable that are compared; a kind that lacks one counts as having None."""


def compared_fields(item: Node) -> tuple[tuple[str, bool], ...]:
    """``(field, defines)`` of all that equality compares and the hash takes of a node, in order."""
    return _OF_VARIABLES if item.KIND in VARIABLE_KINDS else item.STRUCTURE


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first difference: the paths from the two roots, and the values there."""

    lhs_path: ObjectPath
    rhs_path: ObjectPath
    lhs: object
    rhs: object
    reason: str

    @property
    def path(self) -> str:
        """The path as text; both where they print differently."""
        left, right = str(self.lhs_path), str(self.rhs_path)
        return left if left == right else f"{left} (rhs: {right})"


Step = tuple[str, object, object]
"""A step of both paths: the method of ObjectPath for it, the keys on the left and the right."""


class _Comparer:
    """One comparison; ``mismatch`` is set at the first difference."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.forward: dict[int, Node] = {}
        self.backward: dict[int, Node] = {}
        self.path: list[Step] = []
        self.mismatch: Mismatch | None = None
        self.alike: set[tuple[int, int]] = set()
        """Expressions that were found equal, which they stay: the mapping only grows."""

    def fail(self, lhs: object, rhs: object, reason: str) -> bool:
        if self.mismatch is None:
            self.mismatch = Mismatch(self.here(0), self.here(1), lhs, rhs, reason)
        return False

    def here(self, side: int) -> ObjectPath:
        path: ObjectPath = ObjectPath.root()
        for kind, *keys in self.path:
            key = keys[side]
            if key is MISSING:
                path = _missing(path, kind, keys[1 - side])
            else:
                path = getattr(path, kind)(key)
        return path

    def equal(self, lhs: object, rhs: object, defines: bool) -> bool:
        if isinstance(lhs, Node) and isinstance(rhs, Node):
            return self.nodes(lhs, rhs, defines)
        if isinstance(lhs, (tuple, list)) and isinstance(rhs, (tuple, list)):
            return self.sequences(lhs, rhs, defines)
        if isinstance(lhs, dict) and isinstance(rhs, dict):
            return self.maps(lhs, rhs, defines)
        if plain_equal(lhs, rhs):
            return True
        return self.fail(lhs, rhs, "the values differ")

    def sequences(self, lhs: Sequence[object], rhs: Sequence[object], defines: bool) -> bool:
        for index in range(min(len(lhs), len(rhs))):
            self.path.append(("array_index", index, index))
            if not self.equal(lhs[index], rhs[index], defines):
                return False
            self.path.pop()
        if len(lhs) != len(rhs):
            first = min(len(lhs), len(rhs))
            self.path.append(_one_sided("array_index", first, first < len(lhs)))
            return self.fail(lhs, rhs, f"the lengths differ: {len(lhs)} and {len(rhs)}")
        return True

    def maps(
        self, lhs: Mapping[object, object], rhs: Mapping[object, object], defines: bool
    ) -> bool:
        if not all(isinstance(key, str) for key in lhs):
            return self.node_maps(lhs, rhs, defines)
        if set(lhs) != set(rhs):
            odd = sorted(str(key) for key in set(lhs) ^ set(rhs))
            self.path.append(_one_sided("map_value", odd[0], odd[0] in lhs))
            return self.fail(lhs, rhs, f"the keys differ: {', '.join(odd)}")
        for key in lhs:
            self.path.append(("map_value", key, key))
            if not self.equal(lhs[key], rhs[key], defines):
                return False
            self.path.pop()
        return True

    def node_maps(
        self, lhs: Mapping[object, object], rhs: Mapping[object, object], defines: bool
    ) -> bool:
        """Maps keyed by nodes: global variables pair by name, variables by their mapping."""
        by_name = {getattr(key, "name_hint", key): key for key in rhs}
        met: set[int] = set()
        other_key: object
        for key, value in lhs.items():
            if isinstance(key, Node) and key.KIND in VARIABLE_KINDS:
                other_key = self.forward.get(id(key), key)
            else:
                other_key = by_name.get(getattr(key, "name_hint", key))
            if other_key is None or other_key not in rhs:
                self.path.append(_one_sided("map_value", key, True))
                return self.fail(key, None, "the key is missing on the right")
            met.add(id(other_key))
            self.path.append(("map_value", key, other_key))
            if not self.equal(value, rhs[other_key], defines):
                return False
            self.path.pop()
        for key in rhs:
            if id(key) not in met:
                self.path.append(_one_sided("map_value", key, False))
                return self.fail(None, key, "the key is missing on the left")
        return True

    def nodes(self, lhs: Node, rhs: Node, defines: bool) -> bool:
        kind = lhs.KIND
        if kind in VARIABLE_KINDS or kind in MAPPED_KINDS:
            known = self.forward.get(id(lhs))
            if known is not None:
                return known is rhs or self.fail(lhs, rhs, "the variables are not the same one")
        elif lhs is rhs and kind in CLOSED_KINDS:
            return True
        if (id(lhs), id(rhs)) in self.alike:
            return True
        if type(lhs) is not type(rhs) and kind != getattr(rhs, "KIND", None):
            names = f"{type(lhs).__name__} and {type(rhs).__name__}"
            return self.fail(lhs, rhs, f"the kinds of node differ: {names}")
        if kind in VARIABLE_KINDS:
            return self.variables(lhs, rhs, defines)
        if kind in MAPPED_KINDS:
            if id(rhs) in self.backward:
                return self.fail(lhs, rhs, "the buffers are not the same one")
            self.forward[id(lhs)], self.backward[id(rhs)] = rhs, lhs
        for name, field_defines in compared_fields(lhs):
            self.path.append(("attr", name, name))
            if not self.equal(getattr(lhs, name), getattr(rhs, name), defines or field_defines):
                return False
            self.path.pop()
        if is_compared_once(type(lhs)):
            self.alike.add((id(lhs), id(rhs)))
        return True

    def variables(self, lhs: Node, rhs: Node, defines: bool) -> bool:
        if id(rhs) in self.backward:
            return self.fail(lhs, rhs, "the variables are not the same one")
        if lhs is not rhs and not (defines or self.map_free_vars):
            return self.fail(lhs, rhs, "two different free variables")
        self.forward[id(lhs)], self.backward[id(rhs)] = rhs, lhs
        for name, _ in compared_fields(lhs):
            mine, its = getattr(lhs, name, None), getattr(rhs, name, None)
            if mine is None and its is None:
                continue
            self.path.append(("attr", name, name))
            if not self.equal(mine, its, defines):
                return False
            self.path.pop()
        return True


def _one_sided(kind: str, key: object, on_the_left: bool) -> Step:
    return (kind, key, MISSING) if on_the_left else (kind, MISSING, key)


def _missing(path: ObjectPath, kind: str, key: object) -> ObjectPath:
    """The path of the item under ``key`` that only one side has."""
    if kind == "array_index" and isinstance(key, int):
        return path.missing_array_element(key)
    return path.missing_map_entry()


def plain_equal(lhs: object, rhs: object) -> bool:
    """Equality of values that are no nodes: numbers by kind and value, NaN equal to NaN.

    ``1``, ``1.0`` and ``True`` are three values, as they print three ways; 0.0 is not -0.0.
    """
    if lhs is rhs:
        return True
    if isinstance(lhs, Node) or isinstance(rhs, Node):
        return False
    if isinstance(lhs, (bool, int, float, str, np.generic, type(None))):
        return _plain_bytes(lhs) == _plain_bytes(rhs)
    if hasattr(lhs, "structural_bytes") and hasattr(rhs, "structural_bytes"):
        return bool(lhs.structural_bytes() == rhs.structural_bytes())
    return bool(lhs == rhs)


@deep_recursion
def first_difference(lhs: object, rhs: object, map_free_vars: bool = False) -> Mismatch | None:
    """The first place where the two differ in structure, or None."""
    if lhs is rhs:
        return None
    comparer = _Comparer(map_free_vars)
    return None if comparer.equal(lhs, rhs, map_free_vars) else comparer.mismatch


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Whether both have the same structure; bound variables are mapped to each other."""
    return first_difference(lhs, rhs, map_free_vars) is None


def get_first_structural_mismatch(
    lhs: object, rhs: object, map_free_vars: bool = False
) -> list[ObjectPath] | None:
    """``[path on the left, path on the right]`` of the first difference, or None."""
    mismatch = first_difference(lhs, rhs, map_free_vars)
    return None if mismatch is None else [mismatch.lhs_path, mismatch.rhs_path]


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """Raise IRValueError with the paths to the first difference, underlined in both texts."""
    mismatch = first_difference(lhs, rhs, map_free_vars)
    if mismatch is not None:
        paths, values = (mismatch.lhs_path, mismatch.rhs_path), (mismatch.lhs, mismatch.rhs)
        raise IRValueError(difference_report((lhs, rhs), paths, values, mismatch.reason))


class _Hasher:
    """Feeds a canonical byte form of a program to a digest; equal programs feed equal bytes."""

    def __init__(
        self, map_free_vars: bool, to_bytes: Callable[[object], bytes] | None = None
    ) -> None:
        self.map_free_vars = map_free_vars
        self.to_bytes = to_bytes or _plain_bytes
        self.numbers: dict[int, int] = {}
        self.kept: list[Node] = []
        self.free: dict[int, int] = {}
        self.digest = hashlib.blake2b(digest_size=16)
        self.expressions: dict[int, bytes] = {}

    def feed(self, value: object, defines: bool) -> None:
        if isinstance(value, Node):
            self.node(value, defines)
        elif isinstance(value, (tuple, list)):
            self.digest.update(b"[%d;" % len(value))
            for item in value:
                self.feed(item, defines)
        elif isinstance(value, dict):
            self.digest.update(b"{%d;" % len(value))
            for key in sorted(value, key=self.key_order):
                self.digest.update(_sized(b"k", self.key_bytes(key)))
                self.feed(value[key], defines)
        else:
            self.digest.update(_sized(b"p", self.to_bytes(value)))

    def key_bytes(self, key: object) -> bytes:
        """The bytes of a key's ``key_order``."""
        text, number = self.key_order(key)
        return b"%d:" % number + text.encode(errors="surrogatepass")

    def key_order(self, key: object) -> tuple[str, int]:
        """Names in alphabetical order; variables in the order in which they were met."""
        return _key_text(key), self.numbers.get(id(key), -1)

    def node(self, item: Node, defines: bool) -> None:
        kind = item.KIND
        if is_compared_once(type(item)):
            self.digest.update(self.form_of_node(item, defines))
            return
        if kind in VARIABLE_KINDS or kind in MAPPED_KINDS:
            number = self.numbers.get(id(item))
            if number is not None:
                self.digest.update(b"#%d;" % number)
                return
            self.numbers[id(item)] = len(self.numbers)
            self.kept.append(item)
        self.digest.update(_head(kind))
        if kind in VARIABLE_KINDS:
            self.variable(item, defines)
            return
        for name, field_defines in compared_fields(item):
            self.feed(getattr(item, name), defines or field_defines)

    def form(self, value: object, defines: bool) -> bytes:
        """The bytes of an expression, or of a part of it, with numbers for variables.

        A variable that is met for the first time is described before the expression.
        """
        if isinstance(value, Node):
            return self.form_of_node(value, defines)
        if isinstance(value, (tuple, list)):
            items = [self.form(item, defines) for item in value]
            return b"[%d;%b" % (len(items), b"".join(items))
        if isinstance(value, dict):
            keys = sorted(value, key=self.key_order)
            items = [
                _sized(b"k", self.key_bytes(key)) + self.form(value[key], defines) for key in keys
            ]
            return b"{%d;%b" % (len(items), b"".join(items))
        return _sized(b"p", self.to_bytes(value))

    def form_of_node(self, item: Node, defines: bool) -> bytes:
        """As ``form``, for a node: computed once for each expression, a digest if it is long."""
        kind = item.KIND
        if kind in VARIABLE_KINDS or kind in MAPPED_KINDS:
            if id(item) not in self.numbers:
                self.digest.update(b"v")
                self.node(item, defines)
            return b"#%d;" % self.numbers[id(item)]
        known = self.expressions.get(id(item))
        if known is None:
            parts = [_head(kind)]
            for name, field_defines in compared_fields(item):
                parts.append(self.form(getattr(item, name), defines or field_defines))
            known = b"".join(parts)
            if len(known) > _LONG:
                known = b"h" + hashlib.blake2b(known, digest_size=16).digest()
            if is_compared_once(type(item)):
                self.expressions[id(item)] = known
        return known

    def variable(self, item: Node, defines: bool) -> None:
        for name, _ in compared_fields(item):
            self.feed(getattr(item, name, None), defines)
        if not (defines or self.map_free_vars):
            self.digest.update(b"free;")


@functools.cache
def _head(kind: str) -> bytes:
    """What begins a node of a class."""
    return _sized(b"n", kind.encode())


def _sized(kind: bytes, content: bytes) -> bytes:
    """The content preceded by its length, so that it cannot run into what follows."""
    return b"%b%d;%b" % (kind, len(content), content)


class _Identifier(_Hasher):
    """A hasher that also feeds the identity of free variables."""

    def variable(self, item: Node, defines: bool) -> None:
        super().variable(item, defines)
        if not defines:
            self.digest.update(b"%d;" % id(item))


def _key_text(key: object) -> str:
    """The name that is a key of a map; the names of variables are no part of the structure."""
    if isinstance(key, Node) and key.KIND in VARIABLE_KINDS:
        return ""
    return str(getattr(key, "name_hint", "" if isinstance(key, Node) else key))


def _plain_bytes(value: object) -> bytes:
    """A value that is no node as bytes, the same in every process."""
    if type(value) is int:  # the most frequent classes first
        return b"i%d" % value
    if type(value) is str:
        return b"s%b" % value.encode(errors="surrogatepass")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return b"b%d" % value
    if isinstance(value, int):  # an enumeration counts as its number
        return b"i%d" % int(value)
    if isinstance(value, float):
        return b"f" + struct.pack("<d", math.nan if math.isnan(value) else value)
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return b"s" + value.encode(errors="surrogatepass")
    if hasattr(value, "structural_bytes"):
        content: bytes = value.structural_bytes()
        return b"a" + content
    return f"{type(value).__name__}:{value}".encode()


def bytes_except_arrays(value: object) -> bytes:
    """As bytes of a value that is no node; of an array only its type and shape."""
    if hasattr(value, "structural_bytes") and hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"n{value.dtype}{list(value.shape)}".encode()
    return _plain_bytes(value)


@deep_recursion
def structural_digest(
    root: object,
    map_free_vars: bool = False,
    *,
    to_bytes: Callable[[object], bytes] | None = None,
) -> bytes:
    """16 bytes equal for structurally equal programs, in every process.

    ``to_bytes`` says what of values that are no nodes counts: all of them by default.
    """
    hasher = _Hasher(map_free_vars, to_bytes)
    hasher.feed(root, map_free_vars)
    return hasher.digest.digest()


def structural_hash(root: object, map_free_vars: bool = False) -> int:
    """A 64-bit hash that agrees with ``structural_equal``."""
    return int.from_bytes(structural_digest(root, map_free_vars)[:8], "little", signed=True)


@deep_recursion
def structural_key(root: object) -> bytes:
    """A key of tables within a process: as ``structural_digest``, but free variables differ.

    ``x + 1`` and ``y + 1`` have one digest and two keys. A table with this key must keep its
    programs alive, as the identity of a variable may be used again after its death.
    """
    hasher = _Identifier(False)
    hasher.feed(root, False)
    return hasher.digest.digest()
