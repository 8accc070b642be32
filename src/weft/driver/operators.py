"""Operators that are compiled when they are called, because their shapes are known only then.

The virtual machine calls :class:`OperatorRunner`, by the name ``RUN_OPERATOR``, for each operator
that ``weft.relax.vm.operator_calls`` left in the bytecode. A function of that one operator is
legalised and built for these arguments. The last ``KEPT`` such functions are kept, by operator,
attributes, shapes, dtypes, and the values of numbers and shapes among the arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.json_text import load_json
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, DataTypeImm, Expr, PrimValue, ShapeExpr, StringImm, Tuple, Var
from weft.relax.expr import const as relax_const
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.errors import LegalizeError, TVMError, wrong_type
from weft.tir.op import const

KEPT: Final = 256

Described = tuple[Any, ...]
"""An argument as a key: ``("tensor", shape, dtype)``, ``("scalar", value, dtype)`` for a constant
without dimensions, ``("tuple", fields)``, or ``(kind, value)``."""


class OperatorRunner:
    """``runner(operator, text, *arguments)`` runs an operator; ``text`` has its attributes.

    ``build`` compiles a module to an Executable (``relax.build``).
    """

    def __init__(self, build: Callable[[IRModule], Executable]) -> None:
        self._build = build
        self._compiled = functools.lru_cache(maxsize=KEPT)(self._compile)
        self._read = functools.lru_cache(maxsize=KEPT)(load_json)

    def __call__(self, name: str, text: str, *arguments: object) -> object:
        tensors: list[NDArray] = []
        kinds = self._read(text)["kinds"]
        described = tuple(
            [_described(kind, value, tensors) for kind, value in zip(kinds, arguments, strict=True)]
        )
        return self._compiled(name, text, described)(*tensors)

    def _compile(
        self, name: str, text: str, described: tuple[Described, ...]
    ) -> Callable[..., object]:
        try:
            executable = self._build(self._module(name, text, described))
        except TVMError as error:
            error.add_note(f"while compiling {name} for {_listed(described)}")
            raise
        for instruction in executable.program.functions["main"].code:
            if instruction[0] == "call" and instruction[2] == ("operator", name):
                raise LegalizeError(f"{name} has no lowering for {_listed(described)}")
        return VirtualMachine(executable)["main"]

    def _module(self, name: str, text: str, described: tuple[Described, ...]) -> IRModule:
        """A module whose ``main`` is the operator alone, on the tensors among its arguments."""
        params: list[Var] = []
        arguments = [_expression(item, params) for item in described]
        builder = BlockBuilder()
        with builder.function("main", params):
            with builder.dataflow():
                call = Call(Op.get(name), arguments, self._read(text)["attrs"])
                result = builder.emit_output(call)
            builder.emit_func_output(result)
        return builder.get()


def _described(kind: object, value: Any, tensors: list[NDArray]) -> Described:
    """The key of an argument; its tensors are appended to ``tensors``."""
    if isinstance(kind, list | tuple):
        fields = zip(kind, value, strict=True)
        return ("tuple", tuple([_described(sub, item, tensors) for sub, item in fields]))
    if kind == "scalar":
        return (kind, value.numpy().item(), str(value.dtype))
    if kind != "tensor":
        return (kind, tuple(value) if kind == "shape" else value)
    if not isinstance(value, NDArray):
        raise wrong_type("expected a tensor", value)
    tensors.append(value)
    return ("tensor", tuple(value.shape), str(value.dtype))


def _expression(described: Described, params: list[Var]) -> Expr:
    """The argument as an expression of the function: a parameter for a tensor, else a constant."""
    kind, value = described[:2]
    if kind == "tensor":
        params.append(Var(f"x{len(params)}", TensorStructInfo(value, described[2])))
        return params[-1]
    if kind == "scalar":
        return relax_const(value, described[2])
    if kind == "tuple":
        return Tuple([_expression(item, params) for item in value])
    if kind == "shape":
        return ShapeExpr(value)
    if kind == "string":
        return StringImm(value)
    return DataTypeImm(value) if kind == "dtype" else PrimValue(const(value, kind))


def _listed(described: Sequence[Described]) -> str:
    """The text of arguments for an error message."""
    return ", ".join(
        [
            f"({_listed(item[1])})"
            if item[0] == "tuple"
            else f"{item[1]} {item[2]}"
            if item[0] == "tensor"
            else str(item[1])
            for item in described
        ]
    )
