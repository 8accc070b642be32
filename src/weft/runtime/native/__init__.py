"""Object code in this process: read, checked, loaded, called."""
