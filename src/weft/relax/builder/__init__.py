"""The parts of the block builder: normal form, names of functions, calls of tensor expressions."""
