"""What expressions of the reference interpreter evaluate to."""

from __future__ import annotations

from typing import Any, TypeAlias

Value: TypeAlias = Any
"""A value of a program.

By the dtype of its expression: an int, a bool, a numpy scalar (floats), an array of a vector's
lanes, a text, or memory (a Pointer, an NDArray). The dtype is known when the program runs, so that
no type checker can tell which.
"""
