"""Level 0: what every room of the compiler stands on. It knows nothing of IR."""
