"""The TVMScript parser: walks Python's ``ast`` of the user's text, with methods by dialect."""

from weft.script.parser.entry import from_source, parse
from weft.support.facade import module_getattr

__all__ = ["from_source", "parse"]

__getattr__, _ = module_getattr(
    __name__, {"ir": "weft.script:ir", "relax": "weft.script:relax", "tir": "weft.script:tir"}
)
