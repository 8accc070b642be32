"""What the block builder is made of: normal form, and calls of tensor expressions."""
