"""What the arguments of a function are: kinds, types and shapes, as databases keep them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.expr import IntImm
from weft.ir.module import IRModule
from weft.runtime.containers import ShapeTuple
from weft.support.dtype import DataType
from weft.support.errors import IRValueError, wrong_type
from weft.tir.analysis.anchor_block import entry_func
from weft.tir.function import PrimFunc
from weft.tir.transform.remove_weight_layout_rewrite_block import with_weights_in_their_layout


class ArgInfo:
    """One argument."""

    @abstractmethod
    def as_json(self) -> list[object]:
        """As TVM's databases write it: ``["TENSOR", "float32", [16, 16]]``."""

    @staticmethod
    def from_json(json_obj: object) -> ArgInfo:
        """The argument that ``as_json`` wrote. Raises IRValueError for anything else.

        >>> ArgInfo.from_json(["TENSOR", "float32", [16, 16]])
        TensorInfo("float32", [16, 16])
        """
        match json_obj:
            case ["TENSOR", str(dtype), [*extents]]:
                shape = [extent for extent in extents if type(extent) is int]
                if len(shape) == len(extents):
                    return TensorInfo(dtype, shape)
        raise IRValueError(
            'ArgInfo.from_json: expected ["TENSOR", data type, shape], such as '
            f'["TENSOR", "float32", [16, 16]], got {json_obj!r:.200}'
        )

    @staticmethod
    def from_prim_func(func: PrimFunc) -> list[ArgInfo]:
        """The arguments of a function whose parameters are all buffers of fixed shapes.

        Raises IRValueError for a scalar parameter or a symbolic shape.

        >>> import weft
        >>> from weft.script import tir as T
        >>> @T.prim_func
        ... def negate(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        ...     for i, j in T.grid(4, 8):
        ...         with T.block("B"):
        ...             vi, vj = T.axis.remap("SS", [i, j])
        ...             B[vi, vj] = -A[vi, vj]
        >>> ArgInfo.from_prim_func(negate)
        [TensorInfo("float32", [4, 8]), TensorInfo("float32", [4, 8])]
        """
        if not isinstance(func, PrimFunc):
            raise wrong_type("ArgInfo.from_prim_func: expected a PrimFunc", func)
        arguments: list[ArgInfo] = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise IRValueError(
                    "ArgInfo.from_prim_func: expected parameters that are buffers, found "
                    f"{param.name}: {param.dtype}; tune a function without scalar parameters"
                )
            shape = [extent.value for extent in buffer.shape if isinstance(extent, IntImm)]
            if len(shape) != len(buffer.shape):
                raise IRValueError(
                    f"ArgInfo.from_prim_func: expected a shape of integers, found {buffer.name} "
                    f"of shape {[str(extent) for extent in buffer.shape]}; bind its symbols first"
                )
            arguments.append(TensorInfo(buffer.dtype, shape))
        return arguments

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """The arguments of the entry of a module.

        Args:
            mod: a module whose entry is marked ``tir.is_entry_func``, named main or the only one.
            remove_preproc: describe weights whose layout a schedule rewrites as they are after it.
        """
        entry = entry_func(mod)
        return ArgInfo.from_prim_func(
            with_weights_in_their_layout(entry, True) if remove_preproc else entry
        )


@dataclass(frozen=True, init=False, repr=False)
class TensorInfo(ArgInfo):
    """A tensor: its data type and its shape.

    >>> TensorInfo("float32", [1, 224, 224, 3]).as_json()
    ['TENSOR', 'float32', [1, 224, 224, 3]]
    """

    dtype: DataType
    shape: ShapeTuple

    def __init__(self, dtype: DataType | str, shape: Sequence[int]) -> None:
        object.__setattr__(self, "dtype", DataType(dtype))
        object.__setattr__(self, "shape", ShapeTuple(shape))

    def as_json(self) -> list[object]:
        return ["TENSOR", str(self.dtype), list(self.shape)]

    def __repr__(self) -> str:
        return f"TensorInfo({json.dumps(str(self.dtype))}, {list(self.shape)})"
