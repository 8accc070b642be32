"""Questions about TensorIR programs, one module each."""
