"""Importers: models of other frameworks as modules of graph functions."""

from weft.relax.frontend.common import detach_params

__all__ = ["detach_params"]
