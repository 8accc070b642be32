"""``torch.compile(model, backend="weft")``: sub-graphs of PyTorch programs, compiled (level 10)."""
