"""The docstring of each primitive names its arguments and shows a call that runs (as a doctest)."""

from __future__ import annotations

import inspect

import pytest

from weft import tir
from weft.tir.schedule.instruction import InstructionKind

PRIMITIVES = sorted({kind.method.lstrip("_") for kind in InstructionKind.REGISTRY.values()})


@pytest.mark.parametrize("name", PRIMITIVES)
def test_arguments_are_described(name):
    method = getattr(tir.Schedule, name)
    parameters = list(inspect.signature(method).parameters)[1:]
    missing = [item for item in parameters if f"    {item}: " not in inspect.getdoc(method)]
    assert not missing


@pytest.mark.parametrize("name", PRIMITIVES)
def test_an_example_calls_the_primitive(name):
    assert f"sch.{name}(" in inspect.getdoc(getattr(tir.Schedule, name)).split(">>> ", 1)[1]
