"""What the error of a script says, and the text below which its carets stand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from weft.script import from_source
from weft.support.errors import DiagnosticError


def error_of(text: str, extra_vars: Mapping[str, object] | None = None) -> tuple[str, str]:
    """The message of the error that a script raises, and the text that it underlines."""
    with pytest.raises(DiagnosticError) as caught:
        from_source(text, extra_vars)
    *rest, shown, carets = str(caught.value).splitlines()
    begin, end = carets.index("^"), carets.rindex("^") + 1
    return rest[0].removeprefix("error: "), shown[begin:end]
