"""The TVMScript parser: Python's ``ast`` of the user's text, walked by (dialect, ast class)."""

from weft.script.parser.entry import from_source, parse

__all__ = ["from_source", "parse"]
