"""What ``torch.export`` writes for a dimension that varies, read without importing torch.

A ``Dim("batch")`` is an object with a name; until torch 2.6 it is a class of an own kind. A hint
(``Dim.AUTO``) has its word in its type; until torch 2.6 it is that word.
"""

from __future__ import annotations


def hint_of(dim: object) -> str:
    """``AUTO``, ``DYNAMIC`` or ``STATIC`` for a hint, else nothing.

    >>> hint_of(3)
    ''
    """
    if type(dim).__name__ != "_DimHint":
        return ""
    return str(getattr(getattr(dim, "type", dim), "name", ""))


def is_named_dim(dim: object) -> bool:
    """Whether it is a ``torch.export.Dim`` with a name, or computed from one (``2 * batch``).

    >>> is_named_dim("batch")
    False
    """
    return any(kind.__name__ in ("Dim", "_Dim") for kind in type(dim).__mro__)
