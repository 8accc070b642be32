"""Copies of ONNX files whose int8 weights are uint8 with a zero point: the same function.

Where a processor has no VNNI, ONNX Runtime adds two products of uint8 and int8 in int16, which
saturates; of uint8 and uint8 its sums are exact, as weft's are of both.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import numpy_helper

WEIGHTS: Final = {
    "MatMulInteger": ((1, 3),), "ConvInteger": ((1, 3),), "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
}  # fmt: skip
"""Operator -> the inputs that are weights, each with its zero point."""


def _constants(model: Any) -> dict[str, Any]:
    """The tensors of a model's constants by name, which may be changed."""
    found = {item.name: item for item in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return found


def with_unsigned_weights(path: Path, folder: Path) -> Path:
    """The file, or a copy of it in ``folder``; every weight that is changed has a zero point."""
    model = onnx.load(str(path))
    constants, changed = _constants(model), set()
    for node in model.graph.node:
        names = [node.input[at] for pair in WEIGHTS.get(node.op_type, ()) for at in pair]
        for name in names:
            tensor = constants[name]
            if name in changed or tensor.data_type != onnx.TensorProto.INT8:
                continue
            moved = numpy_helper.to_array(tensor).astype("int16") + 128
            tensor.CopyFrom(numpy_helper.from_array(moved.astype(np.uint8), name))
            changed.add(name)
    known = [info for info in model.graph.value_info if info.name not in changed]
    del model.graph.value_info[:]
    model.graph.value_info.extend(known)
    copy = folder / path.name
    onnx.save(model, str(copy))
    return copy
