"""The type of values in the reference interpreter."""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A value of a program.

Depending on the dtype of its expression, it is an int, a bool, a numpy scalar (floats), an array of
a vector's lanes, a text, or memory (a Pointer, an NDArray). The dtype is only known when the
program runs, so a type checker cannot tell which.
"""
