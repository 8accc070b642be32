"""Valid things to damage: texts of this suite, programs, traces, ``.weft`` files, ONNX models."""

from __future__ import annotations

import ast
import functools
import random
import tempfile
from pathlib import Path

import numpy as np

import weft
from tests.lib.random_schedules import random_schedule
from weft import relax, tir
from weft.script import from_source
from weft.tir.schedule.trace import Trace

ROOT = Path(__file__).parents[2]
FOLDERS = ("tir", "relax", "script", "te", "topi", "codegen", "arith", "course", "safety")
"""Rooms whose tests have scripts."""
LONGEST = 6000
"""Characters of a text: what is longer takes its time in every stage and shows no more."""


@functools.cache
def script_files():
    """The files of the suite that hold scripts, in order."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / "tests" / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "@T.prim_func" in text or "@R.function" in text or "@I.ir_module" in text:
                found.append(path)
    return found


@functools.cache
def scripts_of(path):
    """The definitions of a file that are scripts, as they stand there."""
    text = path.read_text(encoding="utf-8")
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            decorators = [ast.unparse(item).partition("(")[0] for item in node.decorator_list]
            if any(name in ("T.prim_func", "R.function", "I.ir_module") for name in decorators):
                source = ast.unparse(node)
                if len(source) < LONGEST:
                    found.append(source)
    return found


def random_script(r):
    """A text that parses on its own, and what it means."""
    while True:
        scripts = scripts_of(r.choice(script_files()))
        if not scripts:
            continue
        text = r.choice(scripts)
        try:
            return text, from_source(text)
        except weft.TVMError:
            continue  # it has names from around it, or shows what is wrong


def random_trace(r):
    """A program and the JSON of a trace of it that has some instructions."""
    while True:
        workload, moves, _ = random_schedule(r.randrange(1 << 30))
        schedule = tir.Schedule(workload.func)
        try:
            for move in moves:
                move.make(schedule)
        except (weft.TVMError, IndexError):
            continue
        trace = schedule.trace.as_json()
        if len(trace[0]) > 2:
            return workload.func, trace


def applied(func, trace):
    """The schedule that a trace makes of a program."""
    schedule = tir.Schedule(func)
    Trace.apply_json_to_schedule(trace, schedule)
    return schedule


def _built(body, *infos, **attrs):
    """A model of a function that a builder fills."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    with builder.function("main", params, attrs=attrs):
        builder.emit_func_output(body(builder, *params))
    return builder.get()


def _fixed(bb, x):
    weight = relax.const(np.arange(32, dtype="float32").reshape(8, 4))
    hidden = bb.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
    return bb.emit(relax.op.nn.softmax(relax.op.add(hidden, relax.const(1.0, "float32"))))


def _pair(bb, x, y):
    total = bb.emit(relax.op.add(x, y))
    return bb.emit(relax.Tuple([total, bb.emit(relax.op.sum(total, axis=[0]))]))


BRANCHES = """
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")
    ) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        if c:
            y = R.add(x, x)
        else:
            y = R.multiply(x, x)
        return y
"""
CLOSURE = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        @R.function
        def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            z = R.add(y, x)
            return z
        w = inner(x)
        return w
"""


@functools.cache
def saved_models():
    """``(bytes, arguments)`` of compiled models of every kind: native, symbolic, bytecode."""
    n = tir.Var("n", "int64")

    def info(*shape):
        return relax.TensorStructInfo(shape, "float32")

    rows = np.arange(24, dtype="float32").reshape(3, 8)
    vector = np.arange(3, dtype="float32")
    models = [
        (_built(_fixed, info(3, 8)), (rows,)),
        (_built(_fixed, info(n, 8)), (rows,)),
        (_built(_pair, info(n, 8), info(n, 8)), (rows, rows)),
        (from_source(BRANCHES), (vector, np.array(True))),
        (from_source(CLOSURE), (vector,)),
        (_built(lambda bb, x: bb.emit(relax.op.unique(x, sorted=True)), info(3)), (vector,)),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (module, arguments) in enumerate(models):
            path = Path(folder, f"{number}.weft")
            weft.compile(module).save(path)
            found.append((path.read_bytes(), arguments))
    return found


def random_saved(r):
    """The bytes of a compiled model, and arguments for it."""
    return r.choice(saved_models())


def seeded(kind, seed):
    """The source of random numbers of one try."""
    return random.Random(f"{kind} {seed}")
