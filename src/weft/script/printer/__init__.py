"""The printer: node -> Doc -> text, in TVM 0.20's TVMScript.

``docsifier`` has the state while a program is printed; ``tir_*``, ``relax_*`` and ``ir_module``
build the docs of nodes; ``doc_printer`` writes their text. This package fills the slot ``text``.
"""

import sys

from weft.script.highlight import display as show_source
from weft.script.printer.entry import (
    show,
    text_and_lines,
    to_html,
    to_repr,
    to_text,
    underlined,
    underlined_heads,
)
from weft.support import slots

__all__ = [
    "show", "show_source", "text_and_lines", "to_html", "to_repr", "to_text", "underlined",
    "underlined_heads",
]  # fmt: skip

slots.text.fill(sys.modules[__name__])
