"""Colours for printed scripts: in a terminal, in a notebook, or none (``show()``, ``_repr_html_``).

pygments colours the text; if it is not installed the text is plain. An IPython kernel counts as a
notebook; colours for terminals are used only if stdout is a terminal.
"""

from __future__ import annotations

import html
import sys
from typing import Any

from weft.support.errors import IRValueError

STYLES = {"light": "default", "dark": "monokai", "ansi": "ansi"}


def display(text: str, style: str | None = None) -> None:
    """Show a script where the user looks: notebook, terminal, or plain stdout."""
    shell = _ipython_kernel()
    if shell is not None:
        shell.display(shell.HTML(to_highlighted_html(text, style)))
        return
    sys.stdout.write((to_ansi(text, style) if sys.stdout.isatty() else text).rstrip("\n") + "\n")


def _ipython_kernel() -> Any:
    """IPython's display module if this process is a notebook's kernel, else None."""
    if "IPython" not in sys.modules:
        return None
    from IPython import display as shell_display  # noqa: PLC0415 - optional package
    from IPython import get_ipython  # noqa: PLC0415 - optional package

    shell = get_ipython()
    return shell_display if shell is not None and hasattr(shell, "kernel") else None


def to_ansi(text: str, style: str | None = None) -> str:
    """The script with terminal colours; plain without pygments.

    Without a style they are the terminal's own sixteen, which are legible on its background.
    """
    tools = _pygments()
    if tools is None:
        return text
    pygments, lexers, formatters = tools
    name = _style(style or "ansi")
    if name == "ansi":
        formatter = formatters.TerminalFormatter()
    else:
        formatter = formatters.Terminal256Formatter(style=name)
    return str(pygments.highlight(text, lexers.PythonLexer(), formatter))


def to_highlighted_html(text: str, style: str | None = None) -> str:
    """The script as HTML with its colours inline.

    Text and background both have a colour, so it is legible in a dark notebook too: of the text
    that has none, the notebook would choose one for its own background.
    """
    tools = _pygments()
    if tools is None:
        return f"<pre>{html.escape(text)}</pre>"
    pygments, lexers, formatters = tools
    name = _style(style)
    formatter = formatters.HtmlFormatter(
        style="default" if name == "ansi" else name, noclasses=True
    )
    formatter.prestyles = f"color: {_legible_on(formatter.style.background_color)}"
    return str(pygments.highlight(text, lexers.PythonLexer(), formatter))


def _legible_on(background: str) -> str:
    """A colour for text without one: dark on a light background (``#rgb`` or ``#rrggbb``)."""
    digits = background.lstrip("#")
    step = len(digits) // 3
    levels = [int((digits[i : i + step] * 2)[:2], 16) for i in range(0, 3 * step, step)]
    return "#24292f" if sum(levels) > 3 * 127 else "#f8f8f2"


def _style(style: str | None) -> str:
    """The pygments style for one of TVM's style names, or for a name of pygments."""
    from pygments.styles import get_all_styles  # noqa: PLC0415 - loaded at the first show()

    name = STYLES.get(style or "light", style or "default")
    known = sorted(get_all_styles())
    if name != "ansi" and name not in known:
        raise IRValueError(
            f"the style of a script: expected one of {', '.join([*STYLES, *known])}, got {style!r}"
        )
    return name


def _pygments() -> Any:
    try:
        import pygments  # noqa: PLC0415 - loaded at the first show()
        from pygments import formatters, lexers  # noqa: PLC0415 - loaded at the first show()
    except ImportError:
        return None
    return pygments, lexers, formatters
