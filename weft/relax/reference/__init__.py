"""The numpy reference of every operator: operator -> function, one file for each family.

It defines what the operators mean (design.md 3.3, 3.14): the interpreter of this room runs a
graph with it, the fuzzer and the numerical tests compare native code with it.
"""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.reference.rule import Reference

REFERENCE: dict[Op, Reference] = {}
"""Every row, merged from the families' tables."""

NO_REFERENCE: dict[str, str] = {}
"""Operators (names without ``relax.``) that the tables leave out, and why."""
