"""Modules: trees of parameters whose methods say what is computed (as ``torch.nn`` has them).

A subclass makes its parameters and parts in ``__init__`` and computes in ``forward`` or in any
other method. ``export_tvm`` runs methods on symbolic tensors and gives an IRModule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, overload

from weft.ir.module import IRModule
from weft.relax.frontend.nn import spec as specs
from weft.relax.frontend.nn.effect import Effect
from weft.relax.frontend.nn.exporter import Exporter
from weft.relax.frontend.nn.subroutine import SubroutineMixin
from weft.relax.frontend.nn.tensor import (
    ArrayLike,
    Object,
    Parameter,
    Tensor,
    get_default_dtype,
    set_default_dtype,
    wrap_nested,
)
from weft.relax.frontend.nn.torch import TorchModule
from weft.runtime.device import Device
from weft.runtime.device import device as as_device
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support import slots
from weft.support.errors import IRKeyError, IRTypeError, IRValueError, wrong_type
from weft.target.target import Target

T = TypeVar("T")
Spec = specs.ModuleSpec | Mapping[str, specs.MethodSpec | specs.RawMethodSpec]
"""Method -> argument -> what it is."""
NamedParameters = list[tuple[str, Parameter]]
"""Parameters with their names, in order."""


class Module(SubroutineMixin):
    """The base of layers and models.

    >>> from weft.relax.frontend import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         self.factor = nn.Parameter((3,))
    ...     def forward(self, x: nn.Tensor):
    ...         return x * self.factor
    >>> mod, params = Scale().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 3], "float32")}})
    >>> [name for name, _ in params], mod["forward"].params[0].struct_info.ndim
    (['factor'], 2)
    """

    def __repr__(self) -> str:
        """Its parts and parameters as a tree: ``Linear(weight: [8, 4], bias: [8])``."""
        parts = [(name, item) for name, item in self._children() if isinstance(item, Module)]
        own = [(name, item) for name, item in self._children() if isinstance(item, Parameter)]
        heads = [f"{name}: {list(item.shape)}" for name, item in own]
        if not parts:
            return f"{type(self).__name__}({', '.join(heads)})"
        lines = [*heads, *[f"({name}): {item!r}" for name, item in parts]]
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {inner}\n)"

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters in it and in its parts, with names such as ``layers.0.weight``."""
        yield from self._named_items(Parameter, prefix)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters in it and in its parts, in order of definition."""
        for _, parameter in self.named_parameters():
            yield parameter

    def _named_items(self, kind: type[T], prefix: str = "") -> Iterator[tuple[str, T]]:
        """The attributes of a class, in it and in its parts, with their names."""
        for name, item in self._children():
            if isinstance(item, kind):
                yield prefix + name, item
            elif isinstance(item, Module):
                yield from item._named_items(kind, f"{prefix}{name}.")

    def _children(self) -> Iterator[tuple[str, object]]:
        """Its own attributes; of a container, what it holds."""
        yield from vars(self).items()

    def _replace_child(self, name: str, item: object) -> None:
        """Put another item in the place of one that ``_children`` gives."""
        setattr(self, name, item)

    def state_dict(
        self, *, prefix: str = "", destination: dict[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """The parameters by name: themselves, no copies."""
        state = {} if destination is None else destination
        state.update(self.named_parameters(prefix))
        return state

    def load_state_dict(
        self, state_dict: Mapping[str, Parameter | ArrayLike], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Take data by name: from Parameters, or arrays as ``Parameter.data`` takes them.

        Returns:
            The names that ``state_dict`` lacks and those that the module has not; with
            ``strict``, IRKeyError where there are any. IRValueError for a Parameter without data.
        """
        if not isinstance(state_dict, Mapping):
            raise wrong_type("load_state_dict: expected a dict from names to arrays", state_dict)
        own = self.state_dict()
        unexpected = [name for name in state_dict if name not in own]
        missing = [name for name in own if name not in state_dict]
        if strict and (missing or unexpected):
            raise IRKeyError(
                f"load_state_dict: Missing keys: {missing}, Unexpected keys: {unexpected}"
            )
        for name, value in state_dict.items():
            if name not in own:
                continue
            data = value.data if isinstance(value, Parameter) else value
            if data is None:
                raise IRValueError(f"Parameter {name} is not set to any concrete tensor")
            own[name].data = data
        return missing, unexpected

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward = getattr(self, "forward", None)
        if forward is None:
            raise IRTypeError(f"nn.Module {type(self).__name__} has no method forward to call")
        return forward(*args, **kwargs)

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of all parameters and effects; those with data refuse."""
        for _, item in list(self._children()):
            change = getattr(item, "to", None)
            if callable(change):
                change(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    @overload
    def export_tvm(
        self, spec: Spec, debug: bool = False, allow_extern: Literal[False] = False
    ) -> tuple[IRModule, NamedParameters]: ...

    @overload
    def export_tvm(
        self, spec: Spec, debug: bool = False, *, allow_extern: Literal[True]
    ) -> tuple[IRModule, NamedParameters, list[object]]: ...

    def export_tvm(
        self, spec: Spec, debug: bool = False, allow_extern: bool = False
    ) -> tuple[IRModule, NamedParameters] | tuple[IRModule, NamedParameters, list[object]]:
        """The module as graph functions, one for each method of ``spec``.

        Args:
            spec: method -> argument -> ``spec.Tensor``, ``int``, or tuples of them, or a
                ModuleSpec. Names in shapes are symbols.
            debug: whether ``op.print_`` and ``op.debug_func`` work; it adds an effect.
            allow_extern: whether to return a third item, the list of external modules.

        Returns:
            The IRModule, and the parameters with their names in the order of the functions'.
        """
        mod, params = Exporter(debug).build(specs.ModuleSpec.from_raw(spec, self))
        return (mod, params, []) if allow_extern else (mod, params)

    def jit(
        self,
        spec: Spec,
        device: str | Device = "cpu",
        pipeline: object = "default_build",
        out_format: str = "torch",
        debug: bool = False,
    ) -> TorchModule:
        """Compile to a TorchModule: ``model["forward"](tensor)`` on torch tensors.

        ``weft.compile`` gives a model that also takes numpy arrays and can be saved. Raises
        IRValueError if a parameter has no data or ``out_format`` is not ``"torch"``.
        """
        if out_format != "torch":
            raise IRValueError(f"jit: Unknown out_format: expected 'torch', got {out_format!r}")
        methods = specs.ModuleSpec.from_raw(spec, self)
        mod, params = Exporter(debug).build(methods)
        missing = [name for name, param in params if param.data is None]
        if missing:
            raise IRValueError(
                f"jit: Parameters are not set to any concrete values: {', '.join(missing[:8])}"
                f"{' ...' if missing[8:] else ''}; load_state_dict sets them"
            )
        where = as_device(device)
        built = slots.relax_build.get()(mod, Target.from_device(where), relax_pipeline=pipeline)
        arrays = [param.data for _, param in params]
        return TorchModule(methods, VirtualMachine(built, where), arrays)


class ModuleList(Module):
    """Modules in a list; called, it applies them one after the other."""

    def __init__(self, modules: Iterable[Any]) -> None:
        if not isinstance(modules, Iterable):
            raise wrong_type("ModuleList: expected modules", modules)
        self.modules = list(modules)

    def _children(self) -> Iterator[tuple[str, object]]:
        """The modules by position."""
        for index, module in enumerate(self.modules):
            yield str(index), module

    def _replace_child(self, name: str, item: object) -> None:
        """Put another module at a position."""
        self.modules[int(name)] = item

    def __iter__(self) -> Iterator[Any]:
        return iter(self.modules)

    def __getitem__(self, idx: int) -> Any:
        return self.modules[idx]

    def __setitem__(self, idx: int, module: object) -> None:
        self.modules[idx] = module

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: object) -> None:
        """Add a module at the end."""
        self.modules.append(module)

    def forward(self, x: Any) -> Any:
        """Each module on what the one before it gave."""
        for module in self.modules:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name.

    >>> from weft.relax.frontend import nn
    >>> parts = nn.ModuleDict({"up": nn.Linear(2, 4, bias=False)})
    >>> [name for name, _ in parts.named_parameters()]
    ['up.weight']
    """

    def __init__(self, modules: Mapping[str, Any] | None = None) -> None:
        if modules is not None and not isinstance(modules, Mapping):
            raise wrong_type("ModuleDict: expected a dict from names to modules", modules)
        self.modules = dict(modules or {})

    def _children(self) -> Iterator[tuple[str, object]]:
        """The modules by name."""
        yield from self.modules.items()

    def _replace_child(self, name: str, item: object) -> None:
        """Put another module under a name."""
        self.modules[name] = item

    def __iter__(self) -> Iterator[str]:
        return iter(self.modules)

    def __contains__(self, name: object) -> bool:
        return name in self.modules

    def __getitem__(self, name: str) -> Any:
        return self.modules[name]

    def __setitem__(self, name: str, module: object) -> None:
        self.modules[name] = module

    def __len__(self) -> int:
        return len(self.modules)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self.modules.keys()

    def values(self) -> Iterable[Any]:
        """The modules."""
        return self.modules.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and modules."""
        return self.modules.items()


__all__ = [
    "Effect", "Module", "ModuleDict", "ModuleList", "Object", "Parameter", "Tensor",
    "get_default_dtype", "set_default_dtype", "wrap_nested",
]  # fmt: skip
