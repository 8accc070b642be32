"""Passes that make several kernels, or several operators, one."""
