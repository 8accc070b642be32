"""Colours never change the text; where there is no pygments, or no terminal, there are none."""

from __future__ import annotations

import html
import re
import sys
import types

import pytest

from weft.script import highlight
from weft.script import tir as T

ANSI = re.compile(r"\x1b\[[0-9;]*m")
TAG = re.compile(r"<[^>]*>")


@T.prim_func
def func(A: T.Buffer((4,), "float32")):
    for i in range(4):
        if i < 2:
            A[i] = T.float32(1)


TEXT = func.script()


class Stream:
    """A stdout that says whether it is a terminal."""

    def __init__(self, terminal):
        self.terminal, self.text = terminal, ""

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.fixture
def without_pygments(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygments", None)


@pytest.mark.parametrize("style", [None, "light", "dark", "ansi", "friendly"])
def test_terminal_colours_leave_the_text(style):
    coloured = highlight.to_ansi(TEXT, style)
    assert "\x1b[" in coloured
    assert ANSI.sub("", coloured).rstrip("\n") == TEXT


def test_styles_differ():
    assert len({highlight.to_ansi(TEXT, style) for style in ("light", "dark", "ansi")}) == 3


@pytest.mark.parametrize("style", [None, "light", "dark", "ansi"])
def test_html_colours_leave_the_text(style):
    page = highlight.to_highlighted_html(TEXT, style)
    assert "<span style=" in page  # colours inline: a notebook has no style sheet of ours
    assert html.unescape(TAG.sub("", page)).strip() == TEXT


def test_an_unknown_style_is_an_error_that_names_it():
    for colour in (highlight.to_ansi, highlight.to_highlighted_html):
        with pytest.raises(ValueError, match="expected one of light, dark, .* got 'no_such_style'"):
            colour(TEXT, "no_such_style")


@pytest.mark.usefixtures("without_pygments")
def test_plain_without_pygments():
    assert highlight.to_ansi(TEXT) == TEXT
    assert highlight.to_highlighted_html("a < b") == "<pre>a &lt; b</pre>"


@pytest.mark.parametrize("terminal", [False, True])
def test_show_colours_only_a_terminal(terminal, monkeypatch):
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    func.show()
    assert ("\x1b[" in stream.text) is terminal
    assert ANSI.sub("", stream.text) == TEXT + "\n"


def test_show_takes_options_of_the_script(capsys):
    func.show(name="renamed", indent_spaces=2)
    shown = capsys.readouterr().out
    assert "def renamed(" in shown
    assert "\n  for i in range(4):" in shown


def test_a_notebook_gets_html(monkeypatch):
    shown = []
    shell = types.SimpleNamespace(HTML=lambda page: ("html", page), display=shown.append)
    monkeypatch.setattr(highlight, "_ipython_kernel", lambda: shell)
    func.show(style="dark")
    ((kind, page),) = shown
    assert kind == "html"
    assert html.unescape(TAG.sub("", page)).strip() == TEXT


def test_a_plain_process_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert highlight._ipython_kernel() is None


def test_an_ipython_terminal_is_no_notebook(monkeypatch):
    fake = types.ModuleType("IPython")
    fake.display = types.ModuleType("IPython.display")
    fake.get_ipython = lambda: types.SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake.display)
    assert highlight._ipython_kernel() is None
    fake.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    assert highlight._ipython_kernel() is fake.display


def test_repr_html_of_a_node():
    assert html.unescape(TAG.sub("", func._repr_html_())).strip() == TEXT
