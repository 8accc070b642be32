"""Mutator: visits the tree of a module and puts other modules, parameters or effects in places."""

from __future__ import annotations

from weft.relax.frontend.nn.core import Module, ModuleList
from weft.relax.frontend.nn.effect import Effect
from weft.relax.frontend.nn.tensor import Parameter

Node = Module | Effect | Parameter
"""A part of a module."""


class Mutator:
    """A subclass overrides ``visit_module``, ``visit_param`` ...; each returns the new node.

    >>> from weft.relax.frontend import nn
    >>> class Halve(Mutator):
    ...     def visit_param(self, name, node):
    ...         return nn.Parameter(node.shape, "float16")
    >>> Halve().visit("", nn.Linear(2, 3, bias=False)).weight
    Parameter([3, 2], "float16")
    """

    def visit_module(self, name: str, node: Module) -> Node:
        """The module for the place ``name``; by default the same one, its parts visited."""
        return self.visit(name, node)

    def visit_effect(self, name: str, node: Effect) -> Node:
        """The effect for the place ``name``."""
        return self.visit(name, node)

    def visit_param(self, name: str, node: Parameter) -> Node:
        """The parameter for the place ``name``."""
        return self.visit(name, node)

    def visit_modulelist(self, name: str, node: ModuleList) -> Node:
        """The list for the place ``name``; by default the same one, its parts visited."""
        return self.visit(name, node)

    def visit(self, name: str, node: Node) -> Node:
        """Visit the parts of ``node``, whose own name is ``name`` (nothing for the root)."""
        if not isinstance(node, Module):
            return node
        for key, child in list(node._children()):
            place = f"{name}.{key}" if name else key
            if isinstance(child, ModuleList):
                node._replace_child(key, self.visit_modulelist(place, child))
            elif isinstance(child, Module):
                node._replace_child(key, self.visit_module(place, child))
            elif isinstance(child, Effect):
                node._replace_child(key, self.visit_effect(place, child))
            elif isinstance(child, Parameter):
                node._replace_child(key, self.visit_param(place, child))
        return node
