"""SpecializePrimFuncBasedOnCallSite: kernels get the constant extents that their callers pass.

Before: ``R.call_tir(add, (x,), R.Tensor((2, 3)))`` of a kernel for buffers of ``(n, m)``. After:
the kernel's buffers have the shape ``(2, 3)``, so its loops have constant extents. If the struct
info of an argument or result names a virtual device with a memory scope, the buffer gets that
scope.

Callers with the same extents and scopes share one version. A private kernel whose callers all agree
is replaced; else each version is a new function (``add1``), and the old kernel stays for the
callers with symbolic extents.
"""

from __future__ import annotations

from typing import Any

from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.node import Map, Node, expect
from weft.ir.transform import define_module_pass
from weft.ir.type import PointerType
from weft.relax.builder.module_builder import NameSupply
from weft.relax.expr import Call, Function
from weft.relax.expr_functor import PyExprMutator, PyExprVisitor
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.prim_func_info import prim_func_info
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.base import CALL_TIR
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc

Site = tuple[tuple[tuple[int | None, ...] | None, str], ...]
"""(extents, memory scope) of each argument and result; None stands for what is not known."""


def _site(call: Call) -> Site | None:
    """What a call says about its tensors; None if the kernel takes scalars or tuples too."""
    fields = getattr(call.args[1].struct_info, "fields", None)
    if len(call.args) != 2 or fields is None:
        return None
    info = call.sinfo_args[0]
    results = info.fields if isinstance(info, TupleStructInfo) else [info]
    infos = [*fields, *results]
    if not all(isinstance(item, TensorStructInfo) for item in infos):
        return None
    return tuple((_extents(item), getattr(item.vdevice, "memory_scope", "")) for item in infos)


def _extents(info: TensorStructInfo) -> tuple[int | None, ...] | None:
    dims = tensor_dims(info)
    return None if dims is None else tuple(constant_value(dim) for dim in dims)


def _specialised(func: PrimFunc, site: Site) -> PrimFunc:
    """The kernel for the extents and scopes of a call; itself if it has them already."""
    known: dict[TirVar, Buffer] = {}
    for param, (extents, _) in zip(func.params, site, strict=True):
        buffer = func.buffer_map[param]
        pairs = [*zip(buffer.shape, extents or (), strict=False)]
        if any(extent is not None and constant_value(dim) is None for dim, extent in pairs):
            shape = [d if extent is None else IntImm(d.dtype, extent) for d, extent in pairs]
            known[param] = decl_buffer(shape, str(buffer.dtype), buffer.name)
    specialised = func.specialize(known)
    return _in_scopes(specialised, [scope for _, scope in site])


def _in_scopes(func: PrimFunc, scopes: list[str]) -> PrimFunc:
    """The kernel with its buffers in other memory scopes; ``""`` leaves a buffer where it is."""
    mapping: dict[Node, Node] = {}
    for param, scope in zip(func.params, scopes, strict=True):
        buffer = func.buffer_map[param]
        if scope and buffer.scope() != scope:
            kind: Any = buffer.data.type_annotation
            data = TirVar(buffer.data.name, PointerType(kind.element_type, scope))
            mapping[buffer] = buffer.with_(data=data)
            mapping[buffer.data] = data
    if not mapping:
        return func
    buffers = {param: mapping.get(buffer, buffer) for param, buffer in func.buffer_map.items()}
    return func.with_(body=substitute(func.body, mapping), buffer_map=Map(buffers))


class _Sites(PyExprVisitor):
    """The sites of each kernel, by name; a use that is no ``call_tir`` is the site None."""

    def __init__(self) -> None:
        self.found: dict[str, dict[Site | None, None]] = {}

    def visit_call_(self, op: Call) -> None:
        if op.op is CALL_TIR and isinstance(op.args[0], GlobalVar):
            self.found.setdefault(op.args[0].name_hint, {})[_site(op)] = None
            self.visit_expr(op.args[1])
        else:
            super().visit_call_(op)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.found.setdefault(op.name_hint, {})[None] = None


class _Redirector(PyExprMutator):
    """Makes each call name the version for its site."""

    def __init__(self, versions: dict[tuple[str, Site], GlobalVar]) -> None:
        super().__init__()
        self.versions = versions

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = expect(super().visit_call_(op), Call)
        if call.op is not CALL_TIR or not isinstance(call.args[0], GlobalVar):
            return call
        site = _site(call)
        callee = None if site is None else self.versions.get((call.args[0].name_hint, site))
        if callee is None:
            return call
        return Call(call.op, [callee, *call.args[1:]], call.attrs, call.sinfo_args, call.span)


def specialize_prim_funcs(mod: IRModule) -> IRModule:
    """The module with kernels specialised for their callers; the same one if none can be."""
    sites, names = _Sites(), NameSupply()
    for gvar, func in mod.functions.items():
        names.fresh(gvar.name_hint)
        if isinstance(func, Function):
            sites.visit_expr(func)
    versions: dict[tuple[str, Site], GlobalVar] = {}
    replaced: dict[str, GlobalVar] = {}
    specialised: dict[GlobalVar, PrimFunc] = {}
    for gvar, func in mod.functions.items():
        if not isinstance(func, PrimFunc) or any(p not in func.buffer_map for p in func.params):
            continue
        known = sites.found.get(gvar.name_hint, {})
        is_private = "global_symbol" not in func.attrs
        for site in known:
            new = func if site is None else _specialised(func, site)
            if site is None or new is func:
                continue
            alone = is_private and len(known) == 1
            callee = GlobalVar(gvar.name_hint if alone else names.fresh(gvar.name_hint))
            callee.struct_info = prim_func_info(new)
            if alone:
                replaced[gvar.name_hint] = callee
            versions[gvar.name_hint, site] = callee
            specialised[callee] = new.without_attr("global_symbol")
    if not versions:
        return mod
    redirector = _Redirector(versions)
    functions: dict[GlobalVar, BaseFunc] = {
        gvar: redirector.visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
        if gvar.name_hint not in replaced
    }
    return IRModule({**functions, **specialised}, None, mod.attrs, mod.global_infos)


SpecializePrimFuncBasedOnCallSite = define_module_pass(
    "SpecializePrimFuncBasedOnCallSite", specialize_prim_funcs
)
