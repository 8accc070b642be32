"""What an operator is to a pass: traits, which passes ask for instead of listing names.

``@operator("relax.nn.mish", ..., traits=Trait.ELEMENTWISE)`` says it once, where the operator is
defined; ``has(call.op, Trait.ELEMENTWISE)`` asks. An operator of a user's own says it the same way,
or with ``Op.register("my.swish", traits=Trait.ELEMENTWISE)``; the passes that ask leave one that
says nothing alone. After the traits of MLIR and xDSL.
"""

from __future__ import annotations

from enum import Flag, auto

from weft.ir.op import ATTRIBUTE_KINDS, Op


class Trait(Flag):
    """Facts about an operator that hold for all arguments and attributes."""

    NONE = 0
    ELEMENTWISE = auto()
    """An element of the result comes from the elements at its place in the tensors, which
    broadcast as numpy's do. No attribute names an axis."""
    REDUCTION = auto()
    """The axes that the attribute ``axis`` lists (None: all) are combined; with ``keepdims`` they
    stay, of extent one."""
    ALONG_AXIS = auto()
    """The result has the shape of the argument, and each line along the attribute ``axis`` (None:
    the flat tensor) comes from that line of the argument alone."""
    CONTRACTION = auto()
    """Products of two arguments are summed, as matmul, convolutions and attention do."""
    COMMUTATIVE = auto()
    """The two arguments may be exchanged."""
    EXACT = auto()
    """The numpy reference gives what compiled code gives, bit for bit: integers wrap in both, and
    IEEE 754 fixes the four operations and the square root (from float64 they round to the same
    narrower float, having more than twice its digits; Figueroa, 1995)."""
    MOVES = auto()
    """Every element of the result is an element of an argument, unchanged."""
    VIEW = auto()
    """The result may be the memory of the first argument."""
    SAME_VALUE = auto()
    """The result is the first argument; only what the compiler is to know of it differs."""
    ALLOCATES = auto()
    """Two calls with equal arguments give two pieces of memory."""
    WRITES = auto()
    """The arguments that the attribute ``inplace_indices`` counts are written."""
    KILLS = auto()
    """The argument's life ends; this is no use of it."""
    OPAQUE = auto()
    """A function that nobody can look into gives the result, which may be any memory."""


ATTRIBUTE_KINDS["traits"] = Trait


def has(callee: object, traits: Trait) -> bool:
    """Whether a callee is an operator with one of these traits; False for functions.

    >>> from weft import relax
    >>> add = relax.op.add(relax.const(1.0), relax.const(2.0)).op
    >>> has(add, Trait.ELEMENTWISE | Trait.REDUCTION), has_all(add, Trait.ELEMENTWISE | Trait.VIEW)
    (True, False)
    """
    return isinstance(callee, Op) and bool(callee.attributes.get("traits", Trait.NONE) & traits)


def has_all(callee: object, traits: Trait) -> bool:
    """Whether a callee is an operator with all of these traits."""
    return isinstance(callee, Op) and callee.attributes.get("traits", Trait.NONE) & traits == traits
