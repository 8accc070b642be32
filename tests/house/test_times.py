"""No test depends on how fast the machine is: no time is asserted, no wait has a short limit."""

from __future__ import annotations

import ast
import textwrap

from tests.lib.syntax import nodes_of

CLOCKS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns", "process_time")
SHORTEST = 300
"""Seconds that a limit has at least: a busy machine takes a hundred times what an idle one does."""


def short_limits(tree):
    """The lines of calls with ``timeout=`` a number of seconds that a busy machine may need."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Call) and not getattr(node.func, "attr", "") == "Plan":
            for given in node.keywords:
                value = getattr(given.value, "value", None)
                if given.arg == "timeout" and isinstance(value, int | float) and value < SHORTEST:
                    yield node.lineno


def times_asserted(tree):
    """The lines of assertions that read a clock."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Assert):
            names = {getattr(inner, "attr", "") for inner in ast.walk(node.test)}
            if names & set(CLOCKS):
                yield node.lineno


def programs_in(tree):
    """The line and the tree of each text that is a program: tests run some in a new process."""
    for node in nodes_of(tree):
        value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and "\n" in value:
            try:
                yield node.lineno, ast.parse(textwrap.dedent(value))
            except (SyntaxError, ValueError):
                continue  # prose, or a part of a program


def test_tests_do_not_depend_on_the_speed_of_the_machine(sources):
    wrong = []
    for path, tree in [(s.path, s.tree) for s in sources if s.path.parts[0] == "tests"]:
        wrong += [f"{path.name}:{line}: a limit under {SHORTEST} s" for line in short_limits(tree)]
        wrong += [f"{path.name}:{line}: asserts a time" for line in times_asserted(tree)]
        for start, program in programs_in(tree):
            lines = [*short_limits(program), *times_asserted(program)]
            wrong += [f"{path.name}:{start + line - 1}: of a program" for line in lines]
    assert not wrong, "\n".join(wrong)
