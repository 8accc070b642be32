"""Exported models: C libraries and headers that run without Python."""
