"""What the arguments of exported methods are: shapes with names for symbols, integers, tuples.

::

    {"forward": {"x": spec.Tensor(["batch", 784], "float32"), "steps": int}}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import index
from typing import Final, Protocol, SupportsIndex, TypeAlias, TypeVar

from weft.ir.expr import PrimExpr
from weft.relax.frontend.nn import tensor
from weft.relax.frontend.nn.tensor import Dim
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type

MODES: Final = ("plain", "packed", "none")
"""How parameters and effects are passed: one by one, as one tuple, or not at all."""


def is_size(value: object) -> bool:
    """Whether a value is a whole number of at least 0, of Python or of numpy."""
    try:
        return (
            isinstance(value, SupportsIndex) and not isinstance(value, bool) and (index(value) >= 0)
        )
    except TypeError:  # a tensor of torch that holds a float
        return False


class Int:
    """An integer, which the method gets as a symbol (``tir.Var``)."""

    def __repr__(self) -> str:
        return "int"


class Tensor:
    """A tensor: extents are numbers, names of symbols or ``tir`` expressions.

    >>> Tensor([1, "n"], "int32")
    Tensor([1, n], 'int32')
    """

    def __init__(self, shape: Sequence[Dim], dtype: str) -> None:
        if isinstance(shape, str) or not isinstance(shape, Sequence):
            raise wrong_type("spec.Tensor: expected a list of extents", shape)
        for extent in shape:
            if not isinstance(extent, str | PrimExpr) and not is_size(extent):
                raise IRTypeError(
                    "spec.Tensor: expected numbers of at least 0, names of symbols or tir "
                    f"expressions as extents, got {extent!r:.60}"
                )
        self.shape = list(shape)
        self.dtype = str(DataType(dtype))

    def __repr__(self) -> str:
        return f"Tensor([{', '.join([str(dim) for dim in self.shape])}], '{self.dtype}')"


class Object:
    """A value that is no tensor; the method gets an ``object_type`` (a class of nn.Object)."""

    def __init__(self, object_type: type[tensor.Object]) -> None:
        self.object_type = object_type

    def __repr__(self) -> str:
        return "object"


class Tuple:
    """A tuple or a list of arguments."""

    def __init__(self, name: str, elements: list[ArgSpec] | tuple[ArgSpec, ...]) -> None:
        if not isinstance(elements, list | tuple):
            raise IRTypeError(
                f"spec.Tuple {name}: Unsupported container type: {type(elements).__name__}; "
                "expected a list or a tuple"
            )
        self.name = name
        self.elements = elements

    def __repr__(self) -> str:
        return repr(self.elements)


ArgSpec: TypeAlias = Int | Tensor | Object | Tuple
"""What one argument is."""
RawSpec: TypeAlias = ArgSpec | type[int] | type[Int] | str | Sequence["RawSpec"]
"""A spec of an argument in one of its short forms."""
RawMethodSpec = Mapping[str, RawSpec | Mapping[str, str]]
"""The specs of a method's arguments by name; ``"$"`` has its modes."""
Method = Callable[..., object]
"""A method of a module."""
T = TypeVar("T")


class HasParts(Protocol):
    """What an nn module is for its export: it knows its parameters and effects by name."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, tensor.Parameter]]: ...

    def _named_items(self, kind: type[T], prefix: str = "") -> Iterator[tuple[str, T]]: ...


class MethodSpec:
    """The arguments of one method, and how it takes parameters and effects (``MODES``)."""

    def __init__(
        self,
        method: Method,
        arg_names: Sequence[str],
        arg_specs: Sequence[ArgSpec],
        param_mode: str,
        effect_mode: str,
    ) -> None:
        for what, mode in (("param_mode", param_mode), ("effect_mode", effect_mode)):
            if mode not in MODES:
                raise IRValueError(
                    f"Invalid {what}: expected {', '.join(map(repr, MODES))}, got {mode!r}"
                )
        self.method = method
        self.arg_names = list(arg_names)
        self.arg_specs = list(arg_specs)
        self.param_mode = param_mode
        self.effect_mode = effect_mode

    def text(self, name: str) -> str:
        """The signature under that name."""
        args = [f"{arg}: {spec}" for arg, spec in zip(self.arg_names, self.arg_specs, strict=True)]
        return f"{name}({', '.join(args)})"

    def __repr__(self) -> str:
        return self.text("MethodSpec")

    @staticmethod
    def from_raw(spec: object, method: Method) -> MethodSpec:
        """From a dict: argument name -> its spec; ``"$"`` has ``param_mode`` and ``effect_mode``.

        Arguments that the dict leaves out must have a default. Raises IRTypeError for a name that
        the method has not, for an argument that is missing, and for what is no spec.
        """
        if isinstance(spec, MethodSpec):
            return spec
        where = getattr(method, "__name__", "method")
        if not isinstance(spec, Mapping):
            raise wrong_type(f"{where}: expected a dict from argument names to specs", spec)
        given = {name: item for name, item in spec.items() if name != "$"}
        options = spec.get("$", {})
        if not isinstance(options, Mapping):
            raise wrong_type(
                f"{where}: $: expected a dict with param_mode and effect_mode", options
            )
        parameters = inspect.signature(method).parameters
        _check_names(where, given, parameters)
        names = [name for name in parameters if name in given]
        return MethodSpec(
            method,
            names,
            [as_spec(given[name], name) for name in names],
            options.get("param_mode", "plain"),
            options.get("effect_mode", "plain"),
        )

    @staticmethod
    def from_torch(args: Sequence[object], method: Method) -> MethodSpec:
        """From example arguments: tensors (or arrays) and integers.

        >>> import numpy as np
        >>> MethodSpec.from_torch([np.zeros((2, 3), "float32"), 4], lambda x, n: x)
        MethodSpec(x: Tensor([2, 3], 'float32'), n: int)
        """
        names = list(inspect.signature(method).parameters)
        if len(names) != len(args):
            raise IRTypeError(f"Expected {len(names)} arguments, but got {len(args)} arguments")
        specs = [of_example(arg, name) for name, arg in zip(names, args, strict=True)]
        return MethodSpec(method, names, specs, "plain", "plain")


class ModuleSpec:
    """The methods of a module that are exported, and what each takes."""

    def __init__(
        self, module: HasParts, method_names: Sequence[str], method_specs: Sequence[MethodSpec]
    ) -> None:
        self.module = module
        self.method_names = list(method_names)
        self.method_specs = list(method_specs)

    @staticmethod
    def from_raw(spec: object, module: HasParts) -> ModuleSpec:
        """From a dict: method name -> its spec; IRTypeError for a method that is not there."""
        if isinstance(spec, ModuleSpec):
            return spec
        if not isinstance(spec, Mapping) or not spec:
            raise IRTypeError(
                "spec: expected a dict from names of methods to specs of their arguments, such as "
                f"{{'forward': {{'x': spec.Tensor([1, 'n'], 'float32')}}}}, got {spec!r:.80}"
            )
        methods = []
        for name, item in spec.items():
            method = getattr(module, name, None) if isinstance(name, str) else None
            if not callable(method):
                raise IRTypeError(f"spec: {type(module).__name__} has no method {name!r}")
            methods.append(MethodSpec.from_raw(item, method))
        return ModuleSpec(module, list(spec), methods)

    def __repr__(self) -> str:
        methods = zip(self.method_names, self.method_specs, strict=True)
        return "ModuleSpec:\n" + "\n".join([f"  {spec.text(name)}" for name, spec in methods])


def as_spec(spec: object, name: str) -> ArgSpec:
    """The spec of one argument from its short forms: ``int``, ``"int"``, tuples and lists."""
    if spec is int or spec is Int or spec == "int":
        return Int()
    if isinstance(spec, Int | Tensor | Object):
        return spec
    elements = spec.elements if isinstance(spec, Tuple) else spec
    if isinstance(elements, list | tuple):
        items = [as_spec(item, f"{name}_{index}") for index, item in enumerate(elements)]
        return Tuple(name, items if isinstance(elements, list) else tuple(items))
    raise IRTypeError(
        f"Invalid spec for argument {name}: {spec!r}; expected spec.Tensor, spec.Int (or int), "
        "spec.Object, or a tuple or list of them"
    )


def of_example(value: object, name: str) -> ArgSpec:
    """The spec of an argument like this one: an array, an integer, a nested tuple or list."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Int()
    if isinstance(value, list | tuple):
        items = [of_example(item, f"{name}_{index}") for index, item in enumerate(value)]
        return Tuple(name, items if isinstance(value, list) else tuple(items))
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Tensor([int(dim) for dim in value.shape], str(value.dtype).removeprefix("torch."))
    raise IRTypeError(
        f"Unsupported argument type: {name} is of {type(value).__name__}; expected an array, an "
        "integer, or a tuple or list of them"
    )


def _check_names(
    where: str, arguments: Mapping[str, object], parameters: Mapping[str, inspect.Parameter]
) -> None:
    listed = ", ".join(parameters) or "none"
    unknown = [name for name in arguments if name not in parameters]
    if unknown:
        raise IRTypeError(f"{where}: has no argument {unknown[0]!r}; its arguments are {listed}")
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    missing = [
        name
        for name, parameter in parameters.items()
        if name not in arguments
        and parameter.default is inspect.Parameter.empty
        and parameter.kind not in variadic
    ]
    if missing:
        raise IRTypeError(
            f"{where}: the spec lacks the argument{'s' * (len(missing) > 1)} "
            f"{', '.join(missing)}; its arguments are {listed}"
        )
