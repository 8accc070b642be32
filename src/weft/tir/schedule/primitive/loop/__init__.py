"""Primitives on loops: their structure, their kinds, merging them, annotations."""
