"""TorchModule: exported methods in the virtual machine, called on torch tensors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from weft.relax.frontend.nn import spec as specs
from weft.runtime.containers import ShapeTuple
from weft.runtime.model.values import to_torch
from weft.runtime.ndarray import NDArray, from_dlpack, is_torch_tensor
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.errors import IRKeyError, IRTypeError

Held: TypeAlias = object
"""What functions of the virtual machine take: arrays, shapes, states of effects, tuples of them."""
Result: TypeAlias = Any
"""A tensor of torch, a list of integers, or a list of results: torch has no types here."""


class TorchModule:
    """What ``Module.jit`` gives: ``model["forward"](x)`` takes and returns torch tensors.

    It holds the state of the effects, which each call hands on to the next.
    """

    def __init__(
        self, spec: specs.ModuleSpec, vm: VirtualMachine, params: Sequence[NDArray | None]
    ) -> None:
        self.spec = spec
        self.vm = vm
        self.params = list(params)
        has_effects = "_initialize_effect" in vm.executable.program.functions
        self.effects: list[Held] | None = list(vm["_initialize_effect"]()) if has_effects else None

    def __getitem__(self, method_name: str) -> Callable[..., Result]:
        """The method of that name; IRKeyError with the names there are."""
        methods = dict(zip(self.spec.method_names, self.spec.method_specs, strict=True))
        if method_name not in methods:
            raise IRKeyError(
                f"Method `{method_name}` is not found in the module spec; it has "
                f"{', '.join(methods)}"
            )
        method = methods[method_name]

        def call(*args: object) -> Result:
            return self._call(method_name, method, args)

        call.__name__ = method_name
        return call

    def _call(self, name: str, method: specs.MethodSpec, args: Sequence[object]) -> Result:
        if len(args) != len(method.arg_names):
            raise IRTypeError(
                f"Argument length mismatch. Expected {len(method.arg_names)} arguments, but got "
                f"{len(args)} arguments. The spec is: {method.text(name)}"
            )
        inputs = [
            _from_torch(arg_name, item, arg)
            for arg_name, item, arg in zip(method.arg_names, method.arg_specs, args, strict=True)
        ]
        inputs += _passed(self.effects or (), method.effect_mode)
        result = self.vm[name](*inputs, *_passed(self.params, method.param_mode))
        if self.effects is not None and method.effect_mode != "none":
            result, effects = result
            self.effects = list(effects)
        return _in_torch(result)


def _passed(items: Sequence[Held], mode: str) -> list[Held]:
    if mode == "packed":
        return [tuple(items)]
    return list(items) if mode == "plain" else []


def _in_torch(value: object) -> Result:
    """A result with its arrays as tensors of torch."""
    if isinstance(value, NDArray):
        importlib.import_module("torch")  # a method without tensors may be the first to need it
        return to_torch(value)
    if isinstance(value, ShapeTuple):
        return list(value)
    if isinstance(value, list | tuple):
        return [_in_torch(item) for item in value]
    raise IRTypeError(f"Unsupported result of a method: {type(value).__name__}")


def _from_torch(name: str, item: specs.ArgSpec, value: object) -> Held:
    if isinstance(item, specs.Tensor):
        if not is_torch_tensor(value):
            raise _unexpected(name, "torch.Tensor", value)
        return from_dlpack(value.detach())
    if isinstance(item, specs.Int):
        if not isinstance(value, int) or isinstance(value, bool):
            raise _unexpected(name, "int", value)
        return ShapeTuple([value])
    if isinstance(item, specs.Tuple):
        if not isinstance(value, list | tuple) or len(value) != len(item.elements):
            raise _unexpected(name, f"a tuple of {len(item.elements)}", value)
        return tuple(
            [
                _from_torch(f"{name}[{index}]", element, value[index])
                for index, element in enumerate(item.elements)
            ]
        )
    return value


def _unexpected(name: str, wanted: str, value: object) -> IRTypeError:
    return IRTypeError(
        f"Expected argument `{name}` to be `{wanted}`, but got {type(value).__name__}"
    )
