"""The elements of TensorProtos and SparseTensorProtos: of initializers and of attributes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.relax.frontend.onnx.element_types import STRING
from weft.relax.frontend.onnx.errors import OnnxModelError, need_onnx
from weft.relax.frontend.onnx.protos import GraphProto, SparseTensorProto, TensorProto


def initializers(graph: GraphProto) -> Iterator[tuple[str, np.ndarray]]:
    """Name and array of every initializer, sparse ones made dense."""
    for tensor in graph.initializer:
        if not tensor.name.strip():
            raise OnnxModelError("an initializer of the graph has no name")
        yield tensor.name, tensor_array(tensor)
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, dense_array(sparse)


def tensor_array(tensor: TensorProto, role: str = "initializer") -> np.ndarray:
    """The elements of a TensorProto; OnnxModelError if its data does not fit its shape."""
    onnx = need_onnx()
    what = f"{role} {tensor.name!r}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise OnnxModelError(
            f"{what}: its data lies in another file; give from_onnx the path "
            "of the model, or load it with onnx.load"
        )
    if any(extent < 0 for extent in tensor.dims):
        raise OnnxModelError(f"{what}: expected extents of at least 0, got {list(tensor.dims)}")
    try:
        elements: np.ndarray = onnx.numpy_helper.to_array(tensor)
        return elements.astype(np.str_) if tensor.data_type == STRING else elements
    except (ValueError, TypeError, KeyError) as error:
        raise OnnxModelError(
            f"{what}: its data does not fit shape {list(tensor.dims)} and "
            f"element type {tensor.data_type}: {str(error).splitlines()[0]}"
        ) from error


def dense_array(sparse: SparseTensorProto) -> np.ndarray:
    """The elements of a SparseTensorProto, zeros written out; OnnxModelError if it has no sense."""
    role = "part of a sparse tensor"
    values, indices = tensor_array(sparse.values, role), tensor_array(sparse.indices, role)
    try:
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
    except (ValueError, IndexError) as error:
        raise OnnxModelError(
            f"sparse tensor {sparse.values.name!r}: its indices do not fit shape "
            f"{list(sparse.dims)} and {len(values)} values: {str(error).splitlines()[0]}"
        ) from error
    return dense
