"""Primitives on buffers: what blocks declare to access, scope, type and alignment."""
