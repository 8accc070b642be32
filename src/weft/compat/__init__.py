"""Spellings of other years and the name ``tvm``: tables, and the little code that applies them.

- ``spellings``: the table of old names; ``adapt``: what the slot ``legacy`` answers from it;
- ``calls``, ``types``: adapters for calls and classes whose form changed;
- ``install``: ``weft.install_as_tvm()``; ``modules``: TVM's module paths that are named otherwise.

The core knows one spelling; it asks here only after a lookup or a binding has failed.
"""
