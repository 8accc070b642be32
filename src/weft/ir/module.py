"""IRModule: the functions of a program by name, with module attributes and global infos."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from weft.ir.attrs import Attrs, as_attrs
from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import Mutator
from weft.ir.node import Array, Map, Node, freeze, node
from weft.support.errors import IRKeyError, IRValueError, wrong_type
from weft.support.span import Span

N = TypeVar("N", bound=Node)

Functions = (
    Mapping[GlobalVar, BaseFunc] | Mapping[str, BaseFunc] | Mapping[GlobalVar | str, BaseFunc]
)
"""Functions by their GlobalVars or names."""
Renames = (
    Mapping[GlobalVar, GlobalVar]
    | Mapping[str, str]
    | Mapping[GlobalVar, str]
    | Mapping[str, GlobalVar]
)
"""Current GlobalVar or name -> new GlobalVar or name."""


@node
class IRModule(Node):
    """Functions keyed by GlobalVar. The one node that users edit in place (``mod["f"] = func``).

    Passes return new modules; ``mod.clone()`` copies. Iteration yields GlobalVars in order of
    definition.
    """

    IS_OPEN: ClassVar[bool] = True

    functions: Map[GlobalVar, BaseFunc]
    attrs: Attrs
    global_infos: Map[str, Array[Any]]

    def __init__(
        self,
        functions: Functions | None = None,
        type_definitions: object = None,
        attrs: Mapping[str, object] | None = None,
        global_infos: Mapping[str, Iterable[object]] | None = None,
        span: Span | None = None,
    ) -> None:
        """Functions may be keyed by GlobalVar or by name."""
        self.functions = Map()
        self.attrs = as_attrs(attrs)
        self.global_infos = Map({k: freeze(list(v)) for k, v in (global_infos or {}).items()})
        self.span, self._cache, self._summary = span, None, 0
        for var, func in _pairs(functions or {}):
            self._add(GlobalVar(_name_of(var)) if isinstance(var, str) else var, func)

    def _add(self, var: GlobalVar, func: BaseFunc) -> None:
        _name_of(var)
        if not isinstance(func, Node):
            raise wrong_type("IRModule: expected a function", func)
        if self._find(var.name_hint) not in (None, var):
            raise IRValueError(f"IRModule: the name {var.name_hint!r} is already taken")
        self.functions[var] = func

    def _find(self, name: str) -> GlobalVar | None:
        for var in self.functions:
            if var.name_hint == name:
                return var
        return None

    def with_(self, **changes: Any) -> IRModule:
        """As ``Node.with_``: self if nothing changes."""
        if all(getattr(self, name) is value for name, value in changes.items()):
            return self
        fields = {n: getattr(self, n) for n in ("functions", "attrs", "global_infos")} | changes
        return IRModule(fields["functions"], None, fields["attrs"], fields["global_infos"])

    def clone(self) -> IRModule:
        """A copy that shares the functions."""
        return IRModule(self.functions, None, self.attrs, self.global_infos)

    def __copy__(self) -> IRModule:
        return self.clone()

    def __deepcopy__(self, memo: object) -> IRModule:
        return self.clone()

    def __getitem__(self, var: GlobalVar | str) -> Any:
        """The function of that name or GlobalVar."""
        if isinstance(var, str):
            return self.functions[self.get_global_var(var)]
        if var not in self.functions:
            return self.functions[self.get_global_var(_name_of(var))]
        return self.functions[var]

    def __setitem__(self, var: GlobalVar | str, func: BaseFunc) -> None:
        if not isinstance(func, Node):
            raise wrong_type("IRModule: expected a function", func)
        name = _name_of(var)
        known = self._find(name)
        if known is None:
            known = GlobalVar(var) if isinstance(var, str) else var
        self.functions[known] = func

    def __delitem__(self, var: GlobalVar | str) -> None:
        del self.functions[self.get_global_var(_name_of(var))]

    def __contains__(self, var: GlobalVar | str) -> bool:
        return self._find(_name_of(var)) is not None

    def __len__(self) -> int:
        return len(self.functions)

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.functions)

    def __bool__(self) -> bool:
        return True

    def functions_items(self) -> ItemsView[GlobalVar, BaseFunc]:
        """Pairs of GlobalVar and function, sorted by name."""
        ordered = sorted(self.functions.items(), key=lambda pair: pair[0].name_hint)
        return dict(ordered).items()

    def get_global_var(self, name: str) -> GlobalVar:
        """The GlobalVar of that name; raises IRKeyError with the names there are."""
        global_var = self._find(name)
        if global_var is None:
            names = ", ".join(sorted(var.name_hint for var in self.functions)[:8]) or "none"
            raise IRKeyError(f"the module has no function {name!r}; it has: {names}")
        return global_var

    def get_global_vars(self) -> Array[GlobalVar]:
        """All GlobalVars."""
        return Array(self.functions)

    def update(self, other: IRModule | Functions) -> None:
        """Add every function of ``other``, in place; functions of the same name are replaced."""
        functions = other.functions if isinstance(other, IRModule) else other
        for var, func in _pairs(functions):
            self[var] = func

    def update_func(self, var: GlobalVar, func: BaseFunc) -> None:
        """Set the function of that name, in place; the variable has its type from then on.

        Calls in other functions keep their struct info: ``well_formed`` and ``build`` report where
        it does not agree with the new function.
        """
        self[var] = func
        info = getattr(func, "struct_info", None)
        if info is not None and isinstance(var, GlobalVar):
            var.struct_info = self.get_global_var(var.name_hint).struct_info = info

    def update_global_info(self, name: str, global_info: Iterable[object]) -> None:
        """Set a list of global infos, in place."""
        self.global_infos[name] = freeze(list(global_info))

    def replace_global_vars(self, replacements: Renames) -> IRModule:
        """A module in which functions are renamed, calls included."""
        from_name = {getattr(k, "name_hint", k): v for k, v in replacements.items()}
        mapping = {}
        for var in self.functions:
            new = from_name.get(var.name_hint)
            if new is not None:
                mapping[var] = GlobalVar(new) if isinstance(new, str) else new
        return rename_functions(self, mapping)

    def get_attr(self, attr_key: str) -> Any:
        """The module attribute, or None."""
        return self.attrs.get(attr_key)

    def with_attr(self, attr_key: str, attr_value: object) -> IRModule:
        """A copy with one module attribute set."""
        return self.with_(attrs=Attrs({**self.attrs, attr_key: freeze(attr_value)}))

    def with_attrs(self, attr_map: Mapping[str, object]) -> IRModule:
        """A copy with these module attributes set; others stay."""
        frozen = {key: freeze(value) for key, value in attr_map.items()}
        return self.with_(attrs=Attrs({**self.attrs, **frozen}))

    def without_attr(self, attr_key: str) -> IRModule:
        """A copy without that module attribute."""
        kept = {key: value for key, value in self.attrs.items() if key != attr_key}
        return self.with_(attrs=Attrs(kept))

    @staticmethod
    def from_expr(expr: object, functions: Functions | None = None) -> IRModule:
        """A module of one function, named by its ``global_symbol`` or else ``main``."""
        module = IRModule(functions)
        if not isinstance(expr, BaseFunc):
            raise wrong_type("from_expr: expected a function", expr)
        module[str(expr.attrs.get("global_symbol", "main"))] = expr
        return module


def _pairs(functions: Functions) -> Iterable[tuple[GlobalVar | str, BaseFunc]]:
    if not isinstance(functions, Mapping):
        raise wrong_type("IRModule: expected a dict from names to functions", functions)
    return functions.items()


def _name_of(var: object) -> str:
    """The name of a function, from a key of a module."""
    name: object = var if isinstance(var, str) else getattr(var, "name_hint", None)
    if not isinstance(name, str):
        raise wrong_type("IRModule: expected a function's name or GlobalVar", var)
    return name


def with_functions(module: IRModule, functions: Mapping[GlobalVar, BaseFunc]) -> IRModule:
    """The module with these functions; the same object if all functions are the same objects."""
    old = module.functions
    if len(functions) == len(old) and all(func is old[var] for var, func in functions.items()):
        return module
    return IRModule(functions, None, module.attrs, module.global_infos)


def rename_functions(module: IRModule, mapping: Mapping[GlobalVar, GlobalVar]) -> IRModule:
    """Replace GlobalVars as keys and in all bodies; ``global_symbol`` follows the new name."""
    renamer = _Renamer(mapping)
    functions = {}
    for var, func in module.functions.items():
        new_var, new_func = mapping.get(var, var), renamer.visit(func)
        if new_var is not var and "global_symbol" in new_func.attrs:
            new_func = new_func.with_attr("global_symbol", new_var.name_hint)
        functions[new_var] = new_func
    return IRModule(functions, None, module.attrs, module.global_infos)


class _Renamer(Mutator):
    def __init__(self, mapping: Mapping[GlobalVar, GlobalVar]) -> None:
        super().__init__()
        self.mapping = mapping

    def visit_GlobalVar(self, var: GlobalVar) -> GlobalVar:
        return self.mapping.get(var, var)

    def visit_default(self, node: N) -> N:
        copy = super().visit_default(node)
        if isinstance(node, RelaxExpr) and isinstance(copy, RelaxExpr) and copy is not node:
            if copy.struct_info is None:
                copy.struct_info = node.struct_info
        return copy
