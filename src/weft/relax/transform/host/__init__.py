"""Passes that lower what the host does: shapes, builtins, purity."""
