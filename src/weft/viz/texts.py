"""The texts of a page, each stored once, by its digest."""

from __future__ import annotations

import hashlib

from weft.ir.function import BaseFunc
from weft.script.printed import without_header
from weft.support.errors import TVMError


class Texts:
    """Digest -> text; the text of a function is made once.

    >>> texts = Texts()
    >>> texts.put("one") == texts.put("one")
    True
    """

    def __init__(self) -> None:
        self.by_digest: dict[str, str] = {}
        self._functions: dict[int, tuple[BaseFunc, str]] = {}

    def put(self, text: str) -> str:
        """The digest under which a text is stored from now on."""
        digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=6).hexdigest()
        self.by_digest[digest] = text
        return digest

    def of(self, func: BaseFunc, name: str) -> str:
        """The digest of a function's text."""
        known = self._functions.get(id(func))
        if known is None:
            known = self._functions[id(func)] = func, self.put(text_of(func, name))
        return known[1]


def text_of(func: BaseFunc, name: str) -> str:
    """A function as TVMScript; what cannot be printed gives the reason as a comment."""
    try:
        text = str(func.script(name=name))
    except TVMError as error:
        return f"# {name} cannot be printed: {error}"
    return without_header(text)
