"""Traits of operators, which passes ask for instead of listing names.

``@operator("relax.nn.mish", ..., traits=Trait.ELEMENTWISE)`` says it once, where the operator is
defined; ``has(call.op, Trait.ELEMENTWISE)`` asks. An operator of a user's own says it the same way,
or with ``Op.register("my.swish", traits=Trait.ELEMENTWISE)``. Passes that ask leave calls of an
operator without traits as they are. The idea is that of the traits of MLIR and xDSL.
"""

from __future__ import annotations

from enum import Flag, auto

from weft.ir.op import ATTRIBUTE_KINDS, Op


class Trait(Flag):
    """Facts about an operator that hold for all arguments and attributes."""

    NONE = 0
    ELEMENTWISE = auto()
    """An element of the result depends on the elements at the same index of the arguments, which
    broadcast as in numpy. No attribute names an axis."""
    REDUCTION = auto()
    """The axes that the attribute ``axis`` lists (None: all) are reduced; with ``keepdims`` they
    stay, with extent one."""
    ALONG_AXIS = auto()
    """The result has the shape of the argument, and each line along the attribute ``axis`` (None:
    the flat tensor) comes from that line of the argument alone."""
    CONTRACTION = auto()
    """Products of two arguments are summed, as matmul, convolutions and attention do."""
    NARROW = auto()
    """Float tensors may be bfloat16 or float16: their products are summed in ``out_dtype``."""
    FOLLOWS = auto()
    """On bfloat16 or float16 the result is about as good as the arguments: a rounding or two are
    added, and nothing but a product or quotient leaves their range. So mixed precision runs the
    operator in the type that its readers want. An operator without this trait, ``MOVES`` or
    ``NARROW`` runs in float32."""
    COMMUTATIVE = auto()
    """The two arguments may be exchanged."""
    EXACT = auto()
    """The numpy reference and compiled code give the same bits: integers wrap in both, and IEEE 754
    fixes the four operations and the square root. So the reference computes in the type of its
    operands. (What numpy computes of 16 bits in float32 and rounds is right, too, as float32 has
    more than twice their digits; Figueroa, 1995.)"""
    MOVES = auto()
    """Every element of the result is an element of an argument, unchanged."""
    VIEW = auto()
    """The result may be the memory of the first argument."""
    SAME_VALUE = auto()
    """The result is the first argument; only what the compiler knows of it differs."""
    ALLOCATES = auto()
    """Each call returns new memory, even for equal arguments."""
    WRITES = auto()
    """The arguments that the attribute ``inplace_indices`` counts are written."""
    KILLS = auto()
    """The memory of the argument is released; the call does not read it."""
    OPAQUE = auto()
    """An unknown function computes the result, which may be any memory."""


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
