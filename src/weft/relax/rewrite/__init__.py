"""Rewriting of whole functions: binding of parameters, canonical form, common subexpressions."""
