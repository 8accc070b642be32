"""Measurements of weft beside its peers and the machine's limits, each printed by one command."""
