"""Names that nothing has yet."""

from __future__ import annotations


def free_name(wanted: str, taken: set[str]) -> str:
    """The first of ``wanted``, ``wanted_1``, ``wanted_2``, ... that is free; it is taken then.

    >>> free_name("x", {"x", "x_1"})
    'x_2'
    """
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
