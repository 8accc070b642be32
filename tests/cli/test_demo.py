"""``weft demo``: its table, its picture, its errors, and one whole run on a single batch."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from weft.cli import demo, demo_engines, main
from weft.data import fashion_mnist
from weft.support.errors import IRValueError


def test_picture_is_28_wide_and_14_high_in_shades(capsys):
    text = demo.draw(np.full((28, 28), 255, np.uint8))
    assert text.split("\n") == ["@" * 28] * 14
    assert demo.draw(np.zeros((28, 28), np.uint8)).strip() == ""


def test_picture_in_a_terminal_uses_half_blocks(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = demo.draw(fashion_mnist.load_subset().images[0]).split("\n")
    assert len(lines) == 14
    assert all(line.count("▀") == 28 for line in lines)


def test_load_images_takes_whole_batches():
    assert len(demo.load_images(None, 250)) == 200


def test_load_images_refuses_less_than_a_batch():
    with pytest.raises(IRValueError, match="at least one batch of 100, got 7"):
        demo.load_images(None, 7)


def test_errors_are_one_line_and_status_one(tmp_path, capsys):
    assert main.main(["demo", "--data", str(tmp_path)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("weft: expected t10k-images-idx3-ubyte")
    assert message.count("\n") == 1


def test_rows_without_pytorch_have_dashes():
    row = demo.Row("MLP", "way", 0.875, None, 1.0, None, 2.0, 0.5)
    assert demo.cells(row, 100)[2:6] == ("87.50 %", "-", "1.00", "-")


def test_an_engine_that_fails_has_its_reason_in_one_line():
    good = SimpleNamespace(name="weft", seconds=[2e-4], setup=1.0, error="")
    failed = SimpleNamespace(name="torch.compile", seconds=[], setup=0.0, error="no compiler\nmore")
    rows = demo_engines.lines("MLP", [good, failed], [86, 0], 100)
    assert rows[0].split() == ["MLP", "weft", "0.200", "1.00", "86", "of", "100", "1.0"]
    assert rows[1].split(maxsplit=2) == ["MLP", "torch.compile", "no compiler"]


def test_without_pytorch_the_first_table_says_so(monkeypatch, capsys):
    monkeypatch.setattr(demo_engines.importlib.util, "find_spec", lambda name: None)
    demo_engines.show([])
    assert "left out, since the models are those of PyTorch" in capsys.readouterr().out


def test_demo_classifies_one_batch_in_every_way(tmp_path, capsys, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(demo, "TIMED_BATCHES", 1)  # the figures are the demo's, not the test's
    monkeypatch.setattr(demo_engines, "ROUNDS", 1)
    monkeypatch.setattr(demo_engines, "PEERS", ("weft", "torch eager"))
    assert main.main(["demo", "--images", "100", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    rows = re.findall(r"^(MLP|CNN) +(\S.*?) +([\d.]+) % +(\d+) of 100 ", printed, re.MULTILINE)
    assert len(rows) == sum(len(model.ways) for model in demo.MODELS)
    assert all(float(accuracy) > 80 and equal == "100" for _, _, accuracy, equal in rows)
    first, _, lesson = printed.partition("The ways of the course, most of them loops as written:")
    engines = re.findall(
        r"^(MLP|CNN) +(\S.*?) +[\d.]+ +([\d.]+) +(\d+) of 100 ", first, re.MULTILINE
    )
    assert [row[:2] for row in engines] == [
        (model, engine) for model in ("MLP", "CNN") for engine in ("weft", "torch eager")
    ]
    assert all(int(right) > 80 for *_, right in engines)
    assert lesson.count("of 100") == len(rows)
    assert "predicted: Ankle boot, labelled: Ankle boot" in printed
    assert len(list(tmp_path.glob("*.py"))) == len(rows)
