"""Level 0: what every other package uses. It knows nothing of IR."""
