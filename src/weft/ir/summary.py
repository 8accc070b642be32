"""What is in a node, as one integer, so that walks skip nodes without what they look for.

A summary is the union of the bits of the node and of every node below it. Its
low bits stand for variables and buffers (a hash of the object, as in a Bloom filter), each of the
others for one class. ``C[i] = A[i] + 1`` has those of BufferStore, BufferLoad, Add, IntImm, Buffer,
Var, and of ``i``, ``A`` and ``C``. A walk that looks for loops need not enter it, nor does a
substitution of ``j``, unless ``j`` and ``i`` happen to share a bit.

A summary is computed when it is first asked for, and stays with the node, whose children never
change. (B. H. Bloom: Space/Time Trade-offs in Hash Coding with Allowable Errors, 1970.)
"""

from __future__ import annotations

import functools
from typing import Final

from weft.ir.node import IDENTITY_BITS, NODE_TYPES, Node, nodes_in, summary_of

IDENTITIES: Final = (1 << IDENTITY_BITS) - 1
"""The bits of variables and buffers."""


def summary_of_value(value: object) -> int:
    """The bits of a node, or of the nodes in a sequence or mapping."""
    if isinstance(value, Node):
        return value._summary or summary_of(value)
    summary = 0
    for node in nodes_in(value):
        summary |= node._summary or summary_of(node)
    return summary


def bits_of(kinds: type | tuple[type, ...]) -> int:
    """The bits of classes and their subclasses.

    >>> from weft.tir.expr import Add, BinaryExpr
    >>> bits_of(BinaryExpr) & Add.BIT == Add.BIT
    True
    """
    return _bits_of(kinds, len(NODE_TYPES))


@functools.cache
def _bits_of(kinds: type | tuple[type, ...], _declared: int) -> int:
    bits = 0
    for declared in NODE_TYPES.values():
        if issubclass(declared, kinds):
            bits |= declared.BIT
    return bits


def identities(nodes: list[Node]) -> int:
    """The bits by which variables and buffers are told apart."""
    bits = 0
    for node in nodes:
        bits |= (node._summary or summary_of(node)) & IDENTITIES
    return bits
