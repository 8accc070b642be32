"""How compiled functions are called: the binary interface, what a function expects, its checks."""
