"""``weft completion``: what a shell then offers, asked of bash itself."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from weft.cli import main

ASK = """
source script.sh
COMP_WORDS=({words}) COMP_CWORD={place}
compopt() {{ :; }}
"$(complete -p weft | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def script(capsys, tmp_path):
    pytest.importorskip("shtab", reason="needs pip install shtab")
    assert main.main(["completion", "bash"]) == 0
    (tmp_path / "script.sh").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "net.onnx").touch()
    return tmp_path


def offered(script, *words):
    """What bash offers for the last of these words."""
    program = ASK.format(words=" ".join([f"'{word}'" for word in words]), place=len(words) - 1)
    done = subprocess.run(
        ["bash", "-c", program], cwd=script, capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_options_choices_and_files(script):
    assert offered(script, "weft", "co") == {"compile", "compare", "completion", "course"}
    assert {"--input", "--target", "--verify"} <= offered(script, "weft", "compile", "--")
    assert offered(script, "weft", "show", "m.onnx", "--stage", "sch") == {"scheduled"}
    assert offered(script, "weft", "compile", "net") == {"net.onnx"}
    assert offered(script, "weft", "completion", "") >= {"bash", "zsh", "fish"}


@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef weft"), ("fish", "complete")])
def test_other_shells_get_a_script(shell, word, capsys):
    pytest.importorskip("shtab", reason="needs pip install shtab")
    assert main.main(["completion", shell]) == 0
    out = capsys.readouterr().out
    assert word in out
    assert all(name in out for name in main.COMMANDS)


def test_without_shtab(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main.main(["completion", "bash"]) == 2
    assert "pip install 'weft-compiler[completion]'" in capsys.readouterr().err
