"""Passes that shape loops for the vectors, caches and teams of a CPU."""
