"""Lines of loaded code, told to profilers and debuggers (``WEFT_PERF=1``)."""
