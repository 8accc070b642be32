"""``torch.compile(model, backend="weft")``: compiles sub-graphs of PyTorch programs (level 10)."""
