"""Registries: a second entry under a name is an error unless the caller says ``override=True``.

Two libraries that use the same name, or a cell of a notebook that runs again, would otherwise
change silently what a name means.
"""

from __future__ import annotations

from weft.support.errors import IRValueError


def refuse_second(what: str, name: object, is_taken: bool, override: bool) -> None:
    """Raise IRValueError if the name is taken and ``override`` is not true.

    ``what`` completes the sentence: ``refuse_second("the pipeline", "mine", True, False)`` says
    "the pipeline 'mine' is already registered; ...".
    """
    if is_taken and not override:
        raise IRValueError(
            f"{what} {name!r} is already registered; pass override=True to replace it, as in a "
            "cell of a notebook that runs again"
        )
