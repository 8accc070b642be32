"""``relax.ir``: where TVM has the instruments of graphs."""
