"""Mathematical functions as formulas of TensorIR."""
