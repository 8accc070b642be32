"""Extents: one tree, and the same number by every printer."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

import weft
from weft.runtime.export.c_text import c_expression
from weft.runtime.extent import Operation, evaluate, evaluator, names_in, parse, python_text
from weft.support.errors import IRTypeError, IRValueError

SUPPORT = Path(weft.__file__).parent / "runtime" / "export" / "library_support.c"
RUNTIME = """
int32_t weft_thread_count, weft_fork_state, weft_team_key = -1;
void weft_stop_workers(void) {}
"""
"""What a model's object code would define."""
SYMBOLS = {"n": 7, "m": 3, "k": 0, "s": -5}


def random_extent(rng, depth=4):
    """A text of every kind of operation; divisors are numbers above 0."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([*SYMBOLS, str(rng.randrange(20))])
    a, b, c = (random_extent(rng, depth - 1) for _ in range(3))
    return rng.choice([
        f"({a} + {b})", f"{a} - ({b})", f"({a}) * ({b})", f"({a}) // {rng.randrange(1, 9)}",
        f"({a}) % {rng.randrange(1, 9)}", f"min({a}, {b})", f"max({a}, {b}, {c})", f"abs({a})",
        f"-({a})", f"({a} if {b} < {c} else {b})", f"({b} if not {a} == {c} else {a})",
    ])  # fmt: skip


EXTENTS = [random_extent(random.Random(seed)) for seed in range(300)]


def test_python_and_the_evaluator_agree():
    function = evaluator(tuple(EXTENTS), tuple(SYMBOLS))
    expected = [int(eval(text, {}, dict(SYMBOLS))) for text in EXTENTS]  # noqa: S307
    assert [evaluate(text, SYMBOLS) for text in EXTENTS] == expected
    assert [int(value) for value in function(*SYMBOLS.values())] == expected
    renamed = {f"v_{name}": value for name, value in SYMBOLS.items()}
    texts = [python_text(text, lambda name: f"v_{name}") for text in EXTENTS]
    assert [int(eval(text, {}, renamed)) for text in texts] == expected  # noqa: S307


def test_c_gives_the_same_numbers(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    lines = [f"  int64_t v_{name} = {value};" for name, value in SYMBOLS.items()]
    lines += [f'  printf("%lld\\n", (long long)({c_expression(text)}));' for text in EXTENTS]
    source = tmp_path / "main.c"
    body = "\n".join(lines)
    source.write_text(
        f'#include "{SUPPORT}"\n#include <stdio.h>\n{RUNTIME}\nint main(void) {{\n{body}\n}}\n'
    )
    program = tmp_path / "program"
    subprocess.run([compiler, "-w", "-o", str(program), str(source)], check=True)
    answer = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    expected = [evaluate(text, SYMBOLS) for text in EXTENTS]
    assert [int(line) for line in answer.stdout.split()] == expected


def test_a_text_is_a_tree():
    assert parse(5) == parse("5") == 5
    assert parse("n") == "n"
    assert parse("n if n > 0 else 1") == Operation("if", (Operation(">", ("n", 0)), "n", 1))
    assert names_in("min(n, m) * 2") == {"n", "m"}
    assert names_in(4) == frozenset()


@pytest.mark.parametrize("text", [
    "n.x", "f(n)", "[n]", "lambda: n", "n +", "__import__('os')", "n if m", "min(n)", "abs(n, m)",
    "n < m < 3", "n and m", "n / 2", "n ** 2", "1.5", "True", "n\n+ m", "min", "max(n, *m)", "",
    "n" + " + n" * 100_000,
])  # fmt: skip
def test_what_is_no_arithmetic_is_refused(text):
    with pytest.raises(IRTypeError, match="^expected"):
        parse(text)


def test_a_symbol_without_a_value_is_named():
    with pytest.raises(IRValueError, match="the extent n \\+ 1 uses a symbol without a value"):
        evaluate("n + 1", {"m": 1})
