"""PyExprVisitor and PyExprMutator: the functors that users subclass, with TVM's method names.

::

    @relax.expr_functor.mutator
    class Rewriter(relax.PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            ...
            return call

A visitor walks; a mutator rebuilds through its block builder ``builder_``, which keeps everything
in normal form: what ``visit_call_`` returns may hold nested calls. A node that does not change
stays the same object. The passes of weft use these too.
"""

from __future__ import annotations

from typing import TypeVar

from weft.relax.expr_mutator import PyExprMutator
from weft.relax.expr_visitor import PyExprVisitor, post_order_visit
from weft.support.errors import IRTypeError

__all__ = ["PyExprMutator", "PyExprVisitor", "mutator", "post_order_visit", "visitor"]

C = TypeVar("C", bound=type)


def visitor(visitor_cls: C) -> C:
    """Decorate a subclass of PyExprVisitor (TVM's spelling; the class is complete without)."""
    return _checked(visitor_cls, PyExprVisitor, "visitor")


def mutator(mutator_cls: C) -> C:
    """Decorate a subclass of PyExprMutator (TVM's spelling; the class is complete without)."""
    return _checked(mutator_cls, PyExprMutator, "mutator")


def _checked(cls: C, base: type, name: str) -> C:
    if not isinstance(cls, type) or not issubclass(cls, base):
        given = getattr(cls, "__name__", repr(cls))
        raise IRTypeError(f"@{name}: {given} must be a subclass of {base.__name__}")
    return cls
