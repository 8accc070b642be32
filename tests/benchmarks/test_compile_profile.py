"""``python -m benchmarks.compile_time --profile``: where the seconds of a compilation go."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROUNDING = 0.005
"""The table has hundredths of seconds."""


def test_the_phases_of_a_cold_compilation_add_up_to_the_whole(root):
    from benchmarks.compile_profile import TITLES

    command = [sys.executable, "-m", "benchmarks.compile_time", "--profile", "--models", "mlp",
               "--repeats", "1", "--peers", "onnxruntime"]  # fmt: skip
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    title, *lines = done.stdout.splitlines()
    assert title.split() == ["mlp", "wall", "s", "share"]
    rows = {line[16:44].strip(): line[44:].split() for line in lines}
    parts = [*TITLES.values(), "rest"]
    others = ["whole", "workers, cpu s", "torch.export, before", "ONNX Runtime loads it"]
    assert list(rows) == [*parts, *others]
    seconds = {name: float(rows[name][0]) for name in [*parts, "whole"]}
    assert min(seconds.values()) >= -ROUNDING
    total = sum(seconds[name] for name in parts)
    assert total == pytest.approx(seconds["whole"], abs=ROUNDING * (len(parts) + 1))


def test_a_peer_that_is_not_installed_is_named(monkeypatch):
    from benchmarks import compile_profile, compile_time

    peer = (compile_profile.load_onnx, "ONNX Runtime loads it", ("no_such_package",))
    monkeypatch.setitem(compile_profile.PEERS, "onnxruntime", peer)
    told = compile_time.peer_seconds("onnxruntime", "mlp", 1)
    assert told.split() == "- skipped: no_such_package not installed".split()


def test_a_peer_that_fails_is_named_with_its_error(monkeypatch):
    from benchmarks import compile_time

    def failing(engine, name):
        stderr = "Traceback (most recent call last):\n  somewhere\nValueError: no such network\n"
        raise subprocess.CalledProcessError(1, [engine, name], "", stderr)

    monkeypatch.setattr(compile_time, "profiled", failing)
    told = compile_time.peer_seconds("torch.compile", "mlp", 1)
    assert told.split() == "- failed: ValueError: no such network".split()
