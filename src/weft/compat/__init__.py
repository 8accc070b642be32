"""Names of other TVM releases, and the name ``tvm``: tables, and the code that applies them.

- ``spellings``: the table of old names; ``adapt``: what the slot ``legacy`` answers from it;
- ``calls``, ``types``: adapters for calls and classes whose form changed;
- ``install``: ``weft.install_as_tvm()``; ``modules``: TVM's module paths that weft names otherwise.

The other packages know one name for each thing. They ask here only after looking up a name, or
binding the arguments of a call, has failed.
"""
