"""Passes that lower what the host does itself: shapes, builtins, purity."""
