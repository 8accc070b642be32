"""Passes that plan memory: where results are written, which tensors share memory."""
