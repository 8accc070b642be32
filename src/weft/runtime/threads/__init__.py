"""Threads of parallel loops: teams, workers and their number."""
