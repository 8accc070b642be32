"""Importers: models of other frameworks as modules of graph functions."""
