"""Builds: pipelines as literal lists, ``build`` and ``compile`` (design.md 2, level 9)."""
