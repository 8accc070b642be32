"""Targets: what code is generated for."""
