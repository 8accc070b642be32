"""Passes that plan memory: destinations, storage that is shared, results over arguments."""
