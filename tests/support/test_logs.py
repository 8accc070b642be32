"""What of the logger ``weft`` a user sees: nothing, what ``WEFT_LOG`` names, what ``-v`` shows."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys

import pytest

import weft
from weft import relax
from weft.support.errors import IRValueError
from weft.support.logs import levels_of

COMPILE = """
import numpy as np, weft
from weft import relax
x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
weft.compile(builder.get())
"""

PROGRAM = """
from weft.script import tir as T

@T.prim_func
def double(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * T.float32(2)
"""


def stderr_of(program, folder, log=None):
    """Standard error of a program, whose caches lie in ``folder``."""
    settings = {"WEFT_CACHE_DIR": str(folder)} | ({} if log is None else {"WEFT_LOG": log})
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **settings}, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return done.stderr


def test_levels_of_loggers():
    assert levels_of("off") == {"weft": logging.CRITICAL + 1}
    assert levels_of("weft.driver=debug,Info") == {"weft.driver": 10, "weft": 20}
    assert levels_of("weft=error, codegen=info") == {"weft": 40, "weft.codegen": 20}


@pytest.mark.parametrize("text", ["verbose", "weft.driver=", "=info", "info,", "driver:debug"])
def test_words_that_mean_nothing(text):
    with pytest.raises(IRValueError, match=r"WEFT_LOG: expected a level \(debug, info, warning"):
        levels_of(text)


def test_nothing_is_logged_unless_asked_for(tmp_path):
    assert stderr_of(COMPILE, tmp_path) == ""


def test_information_tells_phases_and_caches(tmp_path):
    first, second = [stderr_of(COMPILE, tmp_path, "info") for _ in range(2)]
    phases = r"INFO weft\.driver\.progress: IRModule: [\d.]+ s \(.*graph [\d.]+"
    assert re.search(phases, first)
    assert re.search(r"weft\.driver\.model_cache: the cache of models has no [0-9a-f]{40}", first)
    assert re.search(r"weft\.codegen\.llvm\.worker_pool: compile worker \d+ is started", first)
    assert "DEBUG" not in first
    assert re.search(r"weft\.driver\.model_cache: [0-9a-f]{40} is in the cache of models", second)
    assert "worker" not in second


def test_one_logger_in_detail(tmp_path):
    shown = stderr_of(COMPILE, tmp_path, "weft.ir=debug,dlight=debug,warning")
    lines = shown.splitlines()
    assert re.search(r"DEBUG weft\.ir\.transform: pass LegalizeOps: [\d.]+ ms", shown)
    assert any("weft.dlight: kernel relu" in line for line in lines)
    assert {line.split()[2] for line in lines} == {"weft.ir.transform:", "weft.dlight:"}


def test_a_reason_why_a_model_is_not_cached(caplog):
    x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    with caplog.at_level("INFO", "weft.driver"):
        weft.compile(builder.get(), relax_pipeline=relax.get_pipeline("weft"))
    assert "not in the cache of models: an option is no plain value" in caplog.text


def test_a_value_that_means_nothing_stops_no_program(tmp_path):
    shown = stderr_of("import weft; print(weft.__version__)", tmp_path, "loud")
    assert "RuntimeWarning: WEFT_LOG: expected a level" in shown
    assert "got 'loud'; nothing is shown" in shown


def test_a_program_that_sets_up_logging_gets_the_messages(tmp_path):
    program = "import logging; logging.basicConfig(format='own %(name)s')\n" + COMPILE
    lines = stderr_of(program, tmp_path, "info").splitlines()
    assert "own weft.driver.progress" in lines
    assert all(line.startswith("own weft.") for line in lines)


def test_the_command_line_logs_what_v_asks_for(tmp_path):
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "show", str(program), "--stage", "asm", "-vv"],
        env={**os.environ, "WEFT_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert {line.split()[1] for line in done.stderr.splitlines()} == {"INFO", "DEBUG"}
    assert " weft." not in done.stdout
