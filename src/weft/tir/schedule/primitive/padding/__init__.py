"""Primitives that pad: decompose_padding, pad_einsum."""
