"""``fallback="torch"``: operators without a converter run in PyTorch, as destination-passing calls.

The operator's name and its arguments that are no tensors go into the call as text, so that the
module can be printed, saved and run in another process that has torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import fx

from weft.relax import op
from weft.relax.expr import Expr, ExternFunc, StringImm
from weft.relax.frontend.torch.complex_tensor import is_complex
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.dtypes import torch_dtype
from weft.relax.frontend.torch.registry import Converter, overload_name
from weft.relax.frontend.torch.values import ComplexTensor, Value
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.runtime.providers import CALL_OPERATOR
from weft.runtime.registry import register_func
from weft.support import slots
from weft.support.errors import UnsupportedError


def torch_fallbacks(names: Iterable[str]) -> dict[str, Converter]:
    """Converters that call the operators of these names in PyTorch."""
    return dict.fromkeys(names, _call_in_torch)


def _call_in_torch(context: Context, *args: Value, **kwargs: Value) -> Value:
    tensors: list[Expr] = []
    name = overload_name(context.node.target)
    value = context.node.meta["val"]
    fakes = value if isinstance(value, list | tuple) else [value]
    description = json.dumps(
        {
            "operator": name,
            "args": [_described(arg, tensors, name) for arg in args],
            "kwargs": {key: _described(arg, tensors, name) for key, arg in kwargs.items()},
            "kept": [index for index, fake in enumerate(fakes) if fake is not None],
        }
    )
    parts = [0 if fake is None else 1 + is_complex(fake) for fake in fakes]
    counts = [count for count in parts if count]
    infos = [
        TensorStructInfo(*about)
        for about, count in zip(context.results, counts, strict=True)
        for _ in range(count)
    ]
    call = op.call_dps_packed(
        ExternFunc(CALL_OPERATOR),
        [StringImm(description), *tensors],
        infos if len(infos) > 1 else infos[0],
    )
    result = context.builder.emit(call)
    planes = iter(
        [context.emit(result[i]) for i in range(len(infos))] if len(infos) > 1 else [result]
    )
    takers: tuple[Callable[[], Value], ...] = (
        lambda: None,
        lambda: next(planes),
        lambda: ComplexTensor(next(planes), next(planes)),
    )
    results = [takers[count]() for count in parts]  # None keeps its place
    return results if isinstance(value, list | tuple) else results[0]


Json = dict[str, "Json"] | list["Json"] | str | int | float | None
"""What a text of JSON says."""


def _described(value: Value, tensors: list[Expr], name: str) -> Json:
    """The JSON form of an argument: a tensor is its place among the tensors."""
    if isinstance(value, ComplexTensor):
        return {
            "complex": [_described(part, tensors, name) for part in (value.real, value.imaginary)]
        }
    if isinstance(value, complex):
        return {"number": [value.real, value.imag]}
    if isinstance(value, Expr):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, list | tuple):
        return {"list": [_described(item, tensors, name) for item in value]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise UnsupportedError(
        f'fallback="torch": {name} has an argument that is not known at import ({value}); '
        "give a converter for it"
    )


@register_func(CALL_OPERATOR, override=True)
def call_operator(description: str, *arrays: NDArray) -> None:
    """Run one operator of torch on NDArrays; the last arrays get its results."""
    call = json.loads(description)
    tensors = [torch.from_dlpack(array) for array in arrays]
    overload = find_overload(call["operator"])
    args = [_argument(item, tensors) for item in call["args"]]
    kwargs = {key: _argument(item, tensors) for key, item in call["kwargs"].items()}
    with torch.no_grad():
        results = overload(*args, **kwargs)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    results = [part for index in call["kept"] for part in _parts(results[index])]
    for destination, result in zip(tensors[-len(results) :], results, strict=True):
        destination.copy_(result)


slots.torch_fallback.fill(call_operator)


def _parts(result: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (result.real, result.imag) if result.is_complex() else (result,)


def _argument(described: dict[str, Any], tensors: list[torch.Tensor]) -> fx.node.Argument:
    """The argument that ``_described`` described."""
    if "complex" in described:
        return torch.complex(*(_argument(item, tensors) for item in described["complex"]))
    if "number" in described:
        return complex(*described["number"])
    if "tensor" in described:
        return tensors[described["tensor"]]
    if "list" in described:
        return [_argument(item, tensors) for item in described["list"]]
    value = described["value"]
    return torch_dtype(value) if isinstance(value, str) and value in _DTYPES else value


_DTYPES: Final = frozenset({"bool", "uint8", "int8", "int16", "int32", "int64", "float16",
                            "bfloat16", "float32", "float64"})  # fmt: skip


def find_overload(name: str) -> torch._ops.OpOverload:
    """``torch.ops.aten.add.Tensor`` of ``aten.add.Tensor``."""
    space, operator, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), operator), overload)
