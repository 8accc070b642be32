"""Numbers that describe a scheduled program to a cost model."""
