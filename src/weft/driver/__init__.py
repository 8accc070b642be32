"""Builds: pipelines as literal lists, ``build`` and ``compile`` (design.md 2, level 9)."""

from weft.support.facade import module_getattr

__getattr__, __dir__ = module_getattr(__name__, {}, ("build", "compile", "pipeline"))
