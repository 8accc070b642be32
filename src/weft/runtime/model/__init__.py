"""Compiled models: called like the model that they were compiled from."""
