"""The lattice of struct infos: equality, subsumption, least upper bound, erasure, call results.

Follows the definitions of the Relax paper (Lai et al. 2023, section 4.1): a more general info
describes a superset of values; a callee's result follows from its signature by binding the
symbolic variables that its parameters define.

Struct infos may share parts: after sixty steps ``t = (t, t)`` there are sixty objects, but the tree
that they describe has 2**60 leaves. So each function here keeps its result for each object or pair
of objects that it has visited (``Pairs``), and its cost follows the number of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar

from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.ir.functor import collect, substitute
from weft.ir.node import Array, expect
from weft.ir.structural import structural_equal
from weft.relax.distributed.struct_info import DTensorStructInfo
from weft.relax.expr import Call, Expr, ShapeExpr, Var
from weft.relax.ir.shape_arith import differ, same_dim, with_symbols
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError, IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var as TirVar

R = TypeVar("R")
Ranked = ShapeStructInfo | TensorStructInfo


class Pairs(Generic[R]):
    """A table of results by the identity of two objects.

    It keeps the objects alive, so that no new object gets the ``id`` of an old one.
    """

    def __init__(self) -> None:
        self._results: dict[tuple[int, int], tuple[object, object, R]] = {}

    def get(self, lhs: object, rhs: object) -> R | None:
        """The result for the pair, or None."""
        entry = self._results.get((id(lhs), id(rhs)))
        return None if entry is None else entry[2]

    def put(self, lhs: object, rhs: object, result: R) -> R:
        """Remember the result, and return it."""
        self._results[id(lhs), id(rhs)] = lhs, rhs, result
        return result


class BaseCheckResult(IntEnum):
    """How a base relates to a derived struct info; the numbers are TVM's."""

    FAIL_L0 = 0
    """No value can be of both kinds."""
    FAIL_L1 = 1
    """The kind, dtype or rank is not known to agree: a match_cast may fail."""
    FAIL_L2 = 2
    """Only dimensions are not known to agree: a match_cast may fail."""
    PASS = 3
    """Every value described by the derived info is described by the base."""


def tensor_dims(info: StructInfo | None) -> Array[PrimExpr] | None:
    """The dimensions of a tensor whose shape is explicit (or a variable of known shape)."""
    shape = getattr(info, "shape", None)
    if shape is None:
        return None
    if isinstance(shape, ShapeExpr):
        return shape.values
    return getattr(shape.struct_info, "values", None)


def struct_info_equal(lhs: StructInfo, rhs: StructInfo) -> bool:
    """Whether both describe the same values; the Analyzer compares symbolic dimensions."""
    if lhs is rhs or structural_equal(lhs, rhs):
        return True
    if type(lhs) is not type(rhs):
        return False
    passes = BaseCheckResult.PASS
    return struct_info_base_check(lhs, rhs) == struct_info_base_check(rhs, lhs) == passes


def struct_info_is_base_of(base: StructInfo, derived: StructInfo) -> bool:
    """Whether every value described by ``derived`` is described by ``base``."""
    return struct_info_base_check(base, derived) == BaseCheckResult.PASS


@deep_recursion
def struct_info_base_check(base: StructInfo, derived: StructInfo) -> BaseCheckResult:
    """How far ``derived`` is from being a special case of ``base``."""
    return _base_check(base, derived, Pairs())


def _base_check(
    base: StructInfo, derived: StructInfo, known: Pairs[BaseCheckResult]
) -> BaseCheckResult:
    if base is derived or isinstance(base, ObjectStructInfo):
        return BaseCheckResult.PASS
    if isinstance(derived, ObjectStructInfo):
        return BaseCheckResult.FAIL_L1
    if type(base) is not type(derived):
        return BaseCheckResult.FAIL_L0
    if not isinstance(base, TupleStructInfo | FuncStructInfo):
        return _BASE_CHECKS[type(base)](base, derived)
    result = known.get(base, derived)
    if result is None:
        if isinstance(base, TupleStructInfo):
            result = _check_tuple(base, expect(derived, TupleStructInfo), known)
        else:
            result = _check_func(base, expect(derived, FuncStructInfo), known)
        known.put(base, derived, result)
    return result


def _check_prim(base: PrimStructInfo, derived: PrimStructInfo) -> BaseCheckResult:
    if base.dtype != derived.dtype:
        return BaseCheckResult.FAIL_L0
    if base.value is None:
        return BaseCheckResult.PASS
    if derived.value is None:
        return BaseCheckResult.FAIL_L2
    return _check_dim(base.value, derived.value)


def _check_dim(base: PrimExpr, derived: PrimExpr) -> BaseCheckResult:
    if same_dim(base, derived):
        return BaseCheckResult.PASS
    return BaseCheckResult.FAIL_L0 if differ(base, derived) else BaseCheckResult.FAIL_L2


def _check_dims(base: Array[PrimExpr], derived: Array[PrimExpr]) -> BaseCheckResult:
    result = BaseCheckResult.PASS
    for mine, its in zip(base, derived, strict=True):
        result = min(result, _check_dim(mine, its))
    return result


def _check_rank(base: Ranked, derived: Ranked) -> BaseCheckResult:
    if base.ndim in (-1, derived.ndim):
        return BaseCheckResult.PASS
    return BaseCheckResult.FAIL_L1 if derived.ndim == -1 else BaseCheckResult.FAIL_L0


def _check_shape(base: ShapeStructInfo, derived: ShapeStructInfo) -> BaseCheckResult:
    rank = _check_rank(base, derived)
    if rank != BaseCheckResult.PASS or base.values is None:
        return rank
    if derived.values is None:
        return BaseCheckResult.FAIL_L2
    return _check_dims(base.values, derived.values)


def _check_tensor(base: TensorStructInfo, derived: TensorStructInfo) -> BaseCheckResult:
    if base.dtype not in ("void", derived.dtype):
        unknown = derived.dtype == "void"
        return BaseCheckResult.FAIL_L1 if unknown else BaseCheckResult.FAIL_L0
    rank = _check_rank(base, derived)
    if rank != BaseCheckResult.PASS:
        return rank
    if base.vdevice is not None and base.vdevice is not derived.vdevice:
        if derived.vdevice is None:
            return BaseCheckResult.FAIL_L1
        if not structural_equal(base.vdevice, derived.vdevice):
            return BaseCheckResult.FAIL_L0
    if base.shape is None or base.shape is derived.shape:
        return BaseCheckResult.PASS
    mine, its = tensor_dims(base), tensor_dims(derived)
    if mine is None or its is None:
        return BaseCheckResult.FAIL_L2
    return _check_dims(mine, its)


def _check_tuple(
    base: TupleStructInfo, derived: TupleStructInfo, known: Pairs[BaseCheckResult]
) -> BaseCheckResult:
    if len(base.fields) != len(derived.fields):
        return BaseCheckResult.FAIL_L0
    result = BaseCheckResult.PASS
    for mine, its in zip(base.fields, derived.fields, strict=True):
        result = min(result, _base_check(mine, its, known))
    return result


def _check_func(
    base: FuncStructInfo, derived: FuncStructInfo, known: Pairs[BaseCheckResult]
) -> BaseCheckResult:
    if base.purity and not derived.purity:
        return BaseCheckResult.FAIL_L0
    if base.params is None:
        return BaseCheckResult.PASS
    if derived.params is None:
        return BaseCheckResult.FAIL_L1
    if len(base.params) != len(derived.params):
        return BaseCheckResult.FAIL_L0
    if structural_equal(base, derived):
        return BaseCheckResult.PASS
    matched = substitute(derived, match_params(derived.params, base.params))
    result = _base_check(base.ret, matched.ret, known)
    for mine, its in zip(base.params, matched.params or (), strict=True):
        result = min(result, _base_check(its, mine, known))
    return result


def _check_dtensor(base: DTensorStructInfo, derived: DTensorStructInfo) -> BaseCheckResult:
    result = struct_info_base_check(base.tensor_sinfo, derived.tensor_sinfo)
    same = _same_placement(base, derived)
    return result if same else min(result, BaseCheckResult.FAIL_L1)


def _same_placement(lhs: DTensorStructInfo, rhs: DTensorStructInfo) -> bool:
    """Whether two distributed tensors have the same mesh and the same placement."""
    return structural_equal(lhs.device_mesh, rhs.device_mesh) and structural_equal(
        lhs.placement, rhs.placement
    )


_BASE_CHECKS: dict[type, Callable[[Any, Any], BaseCheckResult]] = {
    PrimStructInfo: _check_prim,
    ShapeStructInfo: _check_shape,
    TensorStructInfo: _check_tensor,
    DTensorStructInfo: _check_dtensor,
}


@deep_recursion
def struct_info_lca(lhs: StructInfo, rhs: StructInfo) -> StructInfo:
    """The most precise struct info that describes the values of both (least upper bound)."""
    return _lca(lhs, rhs, Pairs(), Pairs())


def _lca(
    lhs: StructInfo, rhs: StructInfo, known: Pairs[StructInfo], checks: Pairs[BaseCheckResult]
) -> StructInfo:
    if _base_check(lhs, rhs, checks) == BaseCheckResult.PASS:
        return lhs
    if _base_check(rhs, lhs, checks) == BaseCheckResult.PASS:
        return rhs
    result = known.get(lhs, rhs)
    return known.put(lhs, rhs, _wider(lhs, rhs, known, checks)) if result is None else result


def _wider(
    lhs: StructInfo, rhs: StructInfo, known: Pairs[StructInfo], checks: Pairs[BaseCheckResult]
) -> StructInfo:
    """The least upper bound of two infos of which neither describes the other's values."""
    if isinstance(lhs, PrimStructInfo) and isinstance(rhs, PrimStructInfo):
        return PrimStructInfo(lhs.dtype) if lhs.dtype == rhs.dtype else ObjectStructInfo()
    if isinstance(lhs, ShapeStructInfo) and isinstance(rhs, ShapeStructInfo):
        return ShapeStructInfo(None, lhs.ndim if lhs.ndim == rhs.ndim else -1)
    if isinstance(lhs, TensorStructInfo) and isinstance(rhs, TensorStructInfo):
        return _tensor_lca(lhs, rhs)
    if isinstance(lhs, TupleStructInfo) and isinstance(rhs, TupleStructInfo):
        if len(lhs.fields) == len(rhs.fields):
            pairs = zip(lhs.fields, rhs.fields, strict=True)
            return TupleStructInfo([_lca(a, b, known, checks) for a, b in pairs])
    if isinstance(lhs, DTensorStructInfo) and isinstance(rhs, DTensorStructInfo):
        whole = _tensor_lca(lhs.tensor_sinfo, rhs.tensor_sinfo)
        if _same_placement(lhs, rhs) and (whole.ndim != -1 or not _sharded(lhs)):
            return DTensorStructInfo(whole, lhs.device_mesh, lhs.placement)
    if isinstance(lhs, FuncStructInfo) and isinstance(rhs, FuncStructInfo):
        purity = lhs.purity and rhs.purity
        ret = _lca(lhs.ret, rhs.ret, known, checks)
        return FuncStructInfo.opaque_func(ret=ret, purity=purity)
    return ObjectStructInfo()


def _tensor_lca(lhs: TensorStructInfo, rhs: TensorStructInfo) -> TensorStructInfo:
    dtype = lhs.dtype if lhs.dtype == rhs.dtype else "void"
    ndim = lhs.ndim if lhs.ndim == rhs.ndim else -1
    vdevice = lhs.vdevice if lhs.vdevice is rhs.vdevice else None
    mine, its = tensor_dims(lhs), tensor_dims(rhs)
    if ndim != -1 and mine is not None and its is not None:
        if all(same_dim(a, b) for a, b in zip(mine, its, strict=True)):
            return TensorStructInfo(lhs.shape, dtype, vdevice)
    return TensorStructInfo(None, dtype, vdevice, ndim)


def _sharded(info: DTensorStructInfo) -> bool:
    return any(spec.axis != -1 for spec in info.placement.dim_specs)


@deep_recursion
def get_static_type(info: StructInfo) -> StructInfo:
    """The info without dimensions: rank and dtype stay (what TVM 0.20 calls the static type)."""
    return _static(info, {})


def _static(info: StructInfo, known: dict[int, StructInfo]) -> StructInfo:
    if isinstance(info, ShapeStructInfo):
        return ShapeStructInfo(None, info.ndim)
    if isinstance(info, TensorStructInfo):
        return TensorStructInfo(None, info.dtype, None, info.ndim)
    if isinstance(info, PrimStructInfo):
        return PrimStructInfo(info.dtype)
    if isinstance(info, DTensorStructInfo):
        return info.with_(tensor_sinfo=_static(info.tensor_sinfo, known))
    if id(info) in known:
        return known[id(info)]
    result: StructInfo = info
    if isinstance(info, TupleStructInfo):
        result = TupleStructInfo([_static(field, known) for field in info.fields])
    elif isinstance(info, FuncStructInfo) and info.params is not None:
        params = [_static(param, known) for param in info.params]
        result = FuncStructInfo(params, _static(info.ret, known), info.purity)
    known[id(info)] = result
    return result


def symbolic_vars(value: object) -> list[TirVar]:
    """The symbolic variables in ``value``, each once, in order of first appearance."""
    return collect(value, TirVar)


_DEFINING: Final = (ShapeExpr, ShapeStructInfo, PrimStructInfo)


def defining_vars(info: StructInfo | None) -> list[TirVar]:
    """The symbolic variables that a parameter of this info defines: whole extents, not parts.

    ``Tensor((n, m + 1))`` defines ``n``, but not ``m``.
    """
    symbols: dict[int, TirVar] = {}
    for item in () if isinstance(info, FuncStructInfo) else collect(info, _DEFINING):
        if isinstance(item, ShapeExpr | ShapeStructInfo):
            for value in item.values or ():
                if isinstance(value, TirVar):
                    symbols.setdefault(id(value), value)
        elif isinstance(item, PrimStructInfo) and isinstance(item.value, TirVar):
            symbols.setdefault(id(item.value), item.value)
    return list(symbols.values())


@deep_recursion
def erase_to_well_defined(
    info: StructInfo,
    shape_var_map: Mapping[TirVar, Extent] | None = None,
    var_map: Mapping[Var, Expr] | None = None,
) -> StructInfo:
    """The info with every part dropped that mentions variables outside of the maps."""
    return _Eraser(shape_var_map or {}, var_map or {}).erase(info)


class _Eraser:
    def __init__(self, symbols: Mapping[TirVar, Extent], variables: Mapping[Var, Expr]) -> None:
        self.symbols, self.variables = symbols, variables
        self.tuples: dict[int, StructInfo] = {}
        """The results for tuples, by ``id``."""

    def erase(self, info: StructInfo) -> StructInfo:
        if isinstance(info, TensorStructInfo):
            shape = self.shape(info.shape)
            if shape is info.shape:
                return info
            return TensorStructInfo(shape, info.dtype, info.vdevice, info.ndim)
        if isinstance(info, ShapeStructInfo):
            values = self.dims(info.values)
            return info if values is info.values else ShapeStructInfo(values, info.ndim)
        if isinstance(info, PrimStructInfo) and info.value is not None:
            value = self.dim(info.value)
            return info if value is info.value else PrimStructInfo(info.dtype, value)
        if isinstance(info, DTensorStructInfo):
            return info.with_(tensor_sinfo=self.erase(info.tensor_sinfo))
        if isinstance(info, TupleStructInfo):
            if id(info) not in self.tuples:
                self.tuples[id(info)] = self.tuple(info)
            return self.tuples[id(info)]
        return info

    def tuple(self, info: TupleStructInfo) -> TupleStructInfo:
        fields = [self.erase(field) for field in info.fields]
        same = all(new is old for new, old in zip(fields, info.fields, strict=True))
        return info if same else TupleStructInfo(fields)

    def shape(self, shape: RelaxExpr | None) -> RelaxExpr | None:
        if isinstance(shape, ShapeExpr):
            values = self.dims(shape.values)
            if values is shape.values:
                return shape
            return None if values is None else ShapeExpr(values)
        return self.variables.get(shape) if isinstance(shape, Var) else shape

    def dims(self, values: Array[PrimExpr] | None) -> Array[PrimExpr] | None:
        if values is None:
            return None
        dims = [dim for dim in map(self.dim, values) if dim is not None]
        if len(dims) < len(values):
            return None
        same = all(new is old for new, old in zip(dims, values, strict=True))
        return values if same else Array(dims)

    def dim(self, value: PrimExpr) -> PrimExpr | None:
        used = symbolic_vars(value)
        if any(var not in self.symbols for var in used):
            return None
        return with_symbols(value, {var: self.symbols[var] for var in used})


@deep_recursion
def match_params(
    params: Sequence[StructInfo], args: Sequence[StructInfo]
) -> dict[TirVar, PrimExpr]:
    """The value of each symbol that ``params`` define, given the infos of the arguments.

    ``match_params([Tensor((n,))], [Tensor((8,))]) == {n: 8}``
    """
    mapping: dict[TirVar, PrimExpr] = {}
    matched: Pairs[bool] = Pairs()
    for param, arg in zip(params, args, strict=True):
        _match(param, arg, mapping, matched)
    return mapping


def _match(
    param: StructInfo, arg: StructInfo, mapping: dict[TirVar, PrimExpr], matched: Pairs[bool]
) -> None:
    mine: Sequence[PrimExpr] | None
    its: Sequence[PrimExpr] | None
    if isinstance(param, DTensorStructInfo) and isinstance(arg, DTensorStructInfo):
        param, arg = param.tensor_sinfo, arg.tensor_sinfo
    if isinstance(param, TensorStructInfo) and isinstance(arg, TensorStructInfo):
        mine, its = tensor_dims(param), tensor_dims(arg)
    elif isinstance(param, ShapeStructInfo) and isinstance(arg, ShapeStructInfo):
        mine, its = param.values, arg.values
    elif isinstance(param, PrimStructInfo) and isinstance(arg, PrimStructInfo):
        mine = None if param.value is None else [param.value]
        its = None if arg.value is None else [arg.value]
    elif isinstance(param, TupleStructInfo) and isinstance(arg, TupleStructInfo):
        if matched.get(param, arg) is None:
            matched.put(param, arg, True)
            for field, its_field in zip(param.fields, arg.fields, strict=False):
                _match(field, its_field, mapping, matched)
        return
    else:
        return
    if mine is None or its is None:
        return
    for dim, value in zip(mine, its, strict=False):
        if isinstance(dim, TirVar):
            mapping.setdefault(dim, value)


def derive_call_ret_struct_info(
    func_info: StructInfo, call: Call, ctx: object = None
) -> StructInfo:
    """The struct info of a call, from the callee's signature and the arguments at hand."""
    if not isinstance(func_info, FuncStructInfo):
        raise IRTypeError(f"call: the callee is no function, its struct info is {func_info}")
    if func_info.params is None:
        if call.sinfo_args:
            return combined(call.sinfo_args)
        if callable(func_info.derive_func):
            return func_info.derive_func(call, ctx)
        return func_info.ret
    name = getattr(call.op, "name_hint", "the function")
    if len(call.args) != len(func_info.params):
        raise IRValueError(
            f"call of {name}: expected {len(func_info.params)} arguments, got {len(call.args)}"
        )
    infos = [arg.struct_info or ObjectStructInfo() for arg in call.args]
    mapping = match_params(func_info.params, infos)
    for index, (param, info) in enumerate(zip(func_info.params, infos, strict=True)):
        expected = substitute(param, mapping)
        if struct_info_base_check(expected, info) == BaseCheckResult.FAIL_L0:
            raise IRTypeError(f"call of {name}: argument {index}: expected {expected}, got {info}")
    outer = {var: var for value in mapping.values() for var in symbolic_vars(value)}
    return erase_to_well_defined(func_info.ret, {**outer, **mapping})


def result_info(
    params: Sequence[StructInfo], declared: StructInfo, derived: StructInfo
) -> StructInfo:
    """The struct info of a function's result: the declared one, or the body's if more precise."""
    if declared is derived or not struct_info_is_base_of(declared, derived):
        return declared
    known = {symbol: symbol for info in [*params, declared] for symbol in symbolic_vars(info)}
    seen = erase_to_well_defined(derived, known)
    if struct_info_is_base_of(seen, declared):
        return declared  # they are equal, or the body's extents are not visible outside
    return seen


def combined(infos: Sequence[StructInfo]) -> StructInfo:
    """The result's info from a call's ``sinfo_args``: Object for none, a tuple for several."""
    if not infos:
        return ObjectStructInfo()
    return infos[0] if len(infos) == 1 else TupleStructInfo(infos)
