"""``.weft`` files: a compiled model in one file, and what must hold of it."""
