"""What a converter sees of the model and of its own node."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

import torch
from torch import fx

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, PrimValue, RelaxLike, const
from weft.relax.frontend.torch.complex_tensor import HELD_AS
from weft.relax.frontend.torch.data_numbers import compute_roundings
from weft.relax.frontend.torch.dtypes import (
    dtype_name,
    held_number,
    promoted_number,
    result_dtype,
)
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.values import Operand, Value
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRTypeError
from weft.tir.op import cast as tir_cast


class Context:
    """The builder, the node at hand, and what torch deduced of the node's result.

    A converter of a user (``custom_converters``) gets the same.
    """

    def __init__(
        self, builder: BlockBuilder, symbols: SymbolTable, env: Mapping[fx.Node, Value]
    ) -> None:
        self.builder = builder
        self.symbols = symbols
        self.env = env
        self.node: fx.Node

    @property
    def block_builder(self) -> BlockBuilder:
        """TVM's name of ``builder``."""
        return self.builder

    # What torch deduced of the result

    @property
    def results(self) -> list[tuple[list[Extent], str]]:
        """Shape and data type of each tensor that the node gives."""
        value = self.node.meta["val"]
        values = value if isinstance(value, list | tuple) else [value]
        return [self.meta_of(item) for item in values if item is not None]

    @property
    def shape(self) -> list[Extent]:
        """The shape of the (first) result."""
        return self.results[0][0]

    @property
    def dtype(self) -> str:
        """The data type of the (first) result."""
        return self.results[0][1]

    def meta_of(self, tensor: torch.Tensor) -> tuple[list[Extent], str]:
        """Shape and data type of a fake tensor; of a complex one those of its two parts."""
        dtype = HELD_AS.get(tensor.dtype, tensor.dtype)
        return [self.extent(size) for size in tensor.shape], dtype_name(dtype)

    def extent(self, size: int | torch.SymInt) -> Extent:
        """The extent that a size is; the program computes what it rounds of floats."""
        if isinstance(size, torch.SymInt):
            compute_roundings(self.builder, self.symbols, size.node.expr)
        return self.symbols.extent(size)

    def is_read(self, index: int) -> bool:
        """Whether anything reads result ``index``; where nothing does, it may be None."""
        return any(
            user.target is not operator.getitem or user.args[1] == index for user in self.node.users
        )

    # What is known of operands

    def info(self, tensor: Expr) -> TensorStructInfo:
        """The struct info of a tensor."""
        info = self.emit(tensor).struct_info
        if not isinstance(info, TensorStructInfo):
            raise IRTypeError(f"{self.node.target}: expected a tensor, got {info}")
        return info

    def dims(self, tensor: Expr) -> list[Extent]:
        """The extents of a tensor: ints where they are constant."""
        dims = tensor_dims(self.info(tensor))
        if dims is None:
            raise IRTypeError(f"{self.node.target}: the shape of {tensor} is not known")
        return [int(dim.value) if isinstance(dim, IntImm) else dim for dim in dims]

    def rank(self, tensor: Expr) -> int:
        """The number of dimensions."""
        return int(self.info(tensor).ndim)

    def dtype_of(self, tensor: Expr) -> str:
        """The data type of a tensor."""
        return str(self.info(tensor).dtype)

    # Building

    def emit(self, expr: RelaxLike) -> Expr:
        """The expression bound to a variable; a variable or constant is itself."""
        if isinstance(expr, Expr) and expr.struct_info is not None:
            return expr
        return self.builder.emit(expr)

    def cast(self, tensor: Expr, dtype: str | None) -> Expr:
        """The tensor in another data type; itself where it has that type, or for None."""
        if dtype is None or self.dtype_of(tensor) == dtype:
            return tensor
        return self.emit(op.astype(tensor, dtype))

    def operand(self, value: Operand, dtype: str) -> Expr:
        """A tensor, number or symbolic number as an operand of that data type."""
        if isinstance(value, Expr) and not isinstance(value, PrimValue):
            return self.cast(value, dtype)
        if isinstance(value, PrimValue):
            value = value.value
        if isinstance(value, IntImm | FloatImm):
            value = value.value
        if isinstance(value, PrimExpr):
            return PrimValue(tir_cast(dtype, value))
        return const(held_number(value, dtype), dtype)

    def term(self, value: Operand, dtype: str) -> Expr:
        """An operand of arithmetic in that data type: a number that it cannot hold wraps around."""
        if isinstance(value, int | float):
            value = promoted_number(value, dtype)
        return self.operand(value, dtype)

    def promoted(self, *operands: Operand) -> list[Expr]:
        """The operands in the data type that torch computes with (``torch.result_type``)."""
        dtype = result_dtype(operands)
        return [self.term(value, dtype) for value in operands]

    def static(self, values: Sequence[object] | object) -> bool:
        """Whether all of the extents are numbers."""
        items = values if isinstance(values, list | tuple) else [values]
        return all(isinstance(item, int) for item in items)
