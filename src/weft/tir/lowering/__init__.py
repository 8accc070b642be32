"""What TensorIR means, written as simpler TensorIR: the last passes before code generation."""
