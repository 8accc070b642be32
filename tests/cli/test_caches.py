"""``weft cache``, ``weft --version``, and names of files that a command does not mean."""

from __future__ import annotations

import pytest

import weft
from weft.cli import main


@pytest.fixture
def caches(tmp_path, monkeypatch):
    """A folder for caches with one file of code and two models."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    for name, size in (("objects/a", 1_000_000), ("models/b", 2_000_000), ("models/c", 500_000)):
        path = tmp_path / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(bytes(size))
    return tmp_path


def test_the_caches_are_shown(caches, capsys):
    assert main.main(["cache"]) == 0
    out = capsys.readouterr().out
    assert f"{caches / 'objects'}: 1 files, 1.0 MB" in out
    assert f"{caches / 'models'}: 2 files, 2.5 MB" in out
    assert main.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"{caches / 'models'}: 2 files, 2.5 MB" in out
    assert "weft cache --clear deletes" in out


def test_the_caches_are_cleared(caches, capsys):
    assert main.main(["cache", "--clear"]) == 0
    assert f"{caches / 'models'}: 2 files deleted, 2.5 MB" in capsys.readouterr().out
    assert not [path for path in caches.rglob("*") if path.is_file()]


def test_the_caches_lie_where_the_system_says(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("WEFT_CACHE_DIR", raising=False)
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main.main(["cache"]) == 0
    assert str(tmp_path / "weft" / "models") in capsys.readouterr().out


def test_without_caches(monkeypatch, capsys):
    monkeypatch.setenv("WEFT_NO_CACHE", "1")
    assert main.main(["cache", "--clear"]) == 0
    assert capsys.readouterr().out.split() == ["objects", "off", "models", "off", "tuning", "off"]


def test_version(capsys):
    with pytest.raises(SystemExit) as end:
        main.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.strip() == f"weft {weft.__version__}"


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("net.onnx", "weft compile net.onnx -o net.weft"),
        ("my net.onnx", "weft compile 'my net.onnx' -o 'my net.weft'"),
    ],
)
def test_run_of_a_model_that_is_not_compiled(capsys, name, command):
    assert main.main(["run", name, "--input", "x.npy"]) == 2
    assert f"first {command}\n" in capsys.readouterr().err
