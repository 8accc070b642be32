"""Mathematical functions as formulas of TensorIR, for ``DecomposeMath``."""
