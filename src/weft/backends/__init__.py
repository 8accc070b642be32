"""Backends: one folder for each family of processors that code is generated for."""
