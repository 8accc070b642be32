"""Models of ``relax.frontend.nn`` for ``weft.compile``.

Example inputs are arrays, or specs (``nn.spec.Tensor``, ``int`` ...) if shapes have symbols. They
are given by position, by name, or as ``export_tvm`` takes them:
``{"forward": {"x": spec.Tensor(...)}}``. Parameters of the module that have data become constants;
the others become inputs, after those of the method.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from weft.driver.module_keys import key_of_ir
from weft.driver.sources import Imported, Request
from weft.relax.frontend.nn import spec as specs
from weft.relax.frontend.nn.core import Effect, Module
from weft.relax.frontend.nn.exporter import Exporter
from weft.relax.transform.graph.bind import BindParams
from weft.runtime.model.signature import Parameter, Signature
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError, wrong_type

_OPTIONS: Final = frozenset({"method"})


def import_nn(request: Request) -> Imported:
    """Import a module's ``forward``, or the method that the option ``method`` or the spec names.

    Raises IRTypeError for inputs that are neither arrays nor specs, and UnsupportedError for a
    module with effects (``jit`` supports those).
    """
    kept: Imported | None = request.intermediate.get("imported")
    if kept is not None:
        return kept
    request.check_options("an nn.Module", _OPTIONS)
    model: Module = request.model
    name = type(model).__name__
    effects = [place for place, _ in model._named_items(Effect)]
    if effects:
        raise UnsupportedError(
            f"compile: {name} has effects ({', '.join(effects[:4])}), whose state calls hand on; "
            "use jit, which keeps it, or export_tvm and the virtual machine"
        )
    entry, method = _method(model, request)
    mod, params = Exporter(plain_integers=True).build(specs.ModuleSpec(model, [entry], [method]))
    own = mod[entry].params[len(method.arg_specs) :]
    bound = {
        var: param.data
        for var, (_, param) in zip(own, params, strict=True)
        if param.data is not None
    }
    free = [place for place, param in params if param.data is None]
    mod = BindParams(entry, bound)(mod)
    return Imported(mod, _signature(name, entry, method, free), entry=entry)


def key_of_nn(request: Request) -> bytes | None:
    """Bytes that identify a module, its parameters and its inputs: the key of its export.

    The export is quick. It is kept in the request, to be used if the key is not in the cache.
    """
    imported = request.intermediate["imported"] = import_nn(request)
    described = key_of_ir(imported.module)
    return None if described is None else described + repr(imported.signature).encode()


def _signature(name: str, entry: str, method: specs.MethodSpec, free: Sequence[str]) -> Signature:
    title = name if entry == "forward" else f"{name}.{entry}"
    keyed = [item.replace(".", "_") for item in free]
    names = [*method.arg_names, *keyed]
    parameters = [Parameter(item, ("leaf", index)) for index, item in enumerate(names)]
    return Signature(title, tuple(parameters), (*method.arg_names, *free), ("leaf", 0))


def _method(model: Module, request: Request) -> tuple[str, specs.MethodSpec]:
    """The method to compile and the spec of its arguments; parameters are passed one by one."""
    chosen = request.options.get("method")
    module_spec = _whole_spec(model, request)
    if module_spec is None:
        name = chosen or "forward"
        method = getattr(model, name, None)
        if not callable(method):
            raise IRTypeError(f"compile: {type(model).__name__} has no method {name!r}")
        method_spec = specs.MethodSpec.from_raw(_of_examples(method, request), method)
    else:
        methods = dict(zip(module_spec.method_names, module_spec.method_specs, strict=True))
        if chosen is None and len(methods) != 1:
            raise IRValueError(
                f"compile: expected a spec of one method, got {', '.join(methods)}; say which as "
                "method=, or compile all with export_tvm and relax.build"
            )
        name = chosen or next(iter(methods))
        if name not in methods:
            raise IRValueError(
                f"compile: the spec has no method {name!r}; it has {', '.join(methods)}"
            )
        method_spec = methods[name]
    names = method_spec.arg_names
    arg_specs = [
        _with_symbols(item, arg, request.dynamic_shapes)
        for arg, item in zip(names, method_spec.arg_specs, strict=True)
    ]
    return name, specs.MethodSpec(method_spec.method, names, arg_specs, "plain", "none")


def _whole_spec(model: Module, request: Request) -> specs.ModuleSpec | None:
    """The spec of the whole module if that was given, and not that of a method's arguments."""
    if len(request.args) == 1 and isinstance(request.args[0], specs.ModuleSpec):
        return request.args[0]
    values = request.kwargs.values()
    if request.kwargs and all(isinstance(item, Mapping | specs.MethodSpec) for item in values):
        return specs.ModuleSpec.from_raw(request.kwargs, model)
    return None


def _of_examples(method: Callable[..., object], request: Request) -> dict[str, specs.ArgSpec]:
    """Argument -> its spec, from example inputs by position and by name."""
    names = list(inspect.signature(method).parameters)
    if len(request.args) > len(names):
        raise IRTypeError(
            f"compile: {method.__name__} takes {', '.join(names) or 'no arguments'}; got "
            f"{len(request.args)} example inputs"
        )
    examples = {**dict(zip(names, request.args, strict=False)), **request.kwargs}
    return {name: _spec_of(value, name) for name, value in examples.items()}


def _spec_of(value: object, name: str) -> specs.ArgSpec:
    if isinstance(value, list | tuple):
        items = [_spec_of(item, f"{name}_{index}") for index, item in enumerate(value)]
        return specs.Tuple(name, items if isinstance(value, list) else tuple(items))
    is_spec = isinstance(value, specs.Tensor | specs.Int | specs.Object | specs.Tuple | type | str)
    return specs.as_spec(value, name) if is_spec else specs.of_example(value, name)


def _with_symbols(item: specs.ArgSpec, name: str, dynamic: object) -> specs.ArgSpec:
    """A spec with symbols for the axes in ``dynamic_shapes``, ``{argument: {axis: name}}``."""
    if dynamic is None:
        return item
    if not isinstance(dynamic, Mapping):
        raise wrong_type(
            "compile: dynamic_shapes of an nn.Module is {argument: {axis: name}}", dynamic
        )
    axes = dynamic.get(name)
    if not axes or not isinstance(item, specs.Tensor):
        return item
    shape = list(item.shape)
    if not isinstance(axes, Mapping) or not all(axis in range(len(shape)) for axis in axes):
        raise IRValueError(
            f"compile: dynamic_shapes: expected {{axis: name}} for {name}, which has {len(shape)} "
            f"dimensions, got {axes!r:.60}"
        )
    for axis, symbol in axes.items():
        if symbol is not None:
            shape[axis] = getattr(symbol, "__name__", str(symbol))
    return specs.Tensor(shape, item.dtype)
