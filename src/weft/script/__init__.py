"""TVMScript: text to programs and back; ``T``, ``R``, ``I`` are ``tir``, ``relax``, ``ir``."""

from weft.support.facade import module_getattr

_NAMES = {
    "from_source": "weft.script.parser.entry",
    "ir_module": "weft.script.ir",
    "parse": "weft.script.parser.entry",
}
__getattr__, __dir__ = module_getattr(
    __name__, _NAMES, ("ir", "ir_builder", "metadata", "parser", "printer", "relax", "tir")
)
