"""Primitives on loops: their structure, their kinds, merging them, notes on them."""
