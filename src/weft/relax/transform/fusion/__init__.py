"""Passes that fuse several operators, or several kernels, into one."""
