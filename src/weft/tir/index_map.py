"""IndexMap: a mapping from indices to indices, used by layouts and ``transform_layout``.

``IndexMap.from_func(lambda i: [i // 4, i % 4])`` maps buffers of 16 elements to 4 × 4. Names and
results are TVM's; inverses come from the iteration maps of ``weft.arith.iter_map``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.arith.int_set import eval_set
from weft.arith.iter_map import (
    IterMapLevel,
    detect_iter_map,
    inverse_affine_iter_map,
    normalize_iter_map_to_expr,
)
from weft.ir.expr import ExprLike, IntImm, PrimExpr, Range, RangeLike, as_prim_expr, as_range
from weft.ir.functor import Mutator, collect, rewrite, substitute
from weft.ir.node import Array, Node, field, node
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.free_name import free_name
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.expr import (
    EQ,
    LE,
    Add,
    BinaryExpr,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    Mul,
    Sub,
    Var,
)
from weft.tir.index_digits import digits_of, reordered

AXIS_SEPARATOR: Final = "axis_separator"
_PADDING_ROUNDS: Final = 10


@node
class IndexMap(Node):
    """``final_indices`` as expressions of ``initial_indices``.

    ``inverse_index_map``, if given, is used as the inverse without a check.
    """

    AXIS_SEPARATOR: ClassVar[str] = AXIS_SEPARATOR
    """A mapping function returns this between groups of indices that are flattened separately."""

    initial_indices: Array[Var] = field(defines=True)
    final_indices: Array[PrimExpr]
    inverse_index_map: Any = field(
        default=None, compare=False, visit=False, stored="IndexMap | None"
    )

    def _check_(self) -> None:
        for var in self.initial_indices:
            if not isinstance(var, Var):
                raise IRTypeError(f"IndexMap: initial_indices must be Vars, got {var!r}")
        inverse = self.inverse_index_map
        if inverse is not None and not isinstance(inverse, IndexMap):
            if not callable(inverse):
                raise wrong_type(
                    "IndexMap: expected a function or an IndexMap as inverse_index_map", inverse
                )
            self.inverse_index_map = IndexMap.from_func(inverse)

    @staticmethod
    def from_func(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: object = None,
        *,
        index_dtype: str = "int64",
    ) -> IndexMap:
        """The map that a Python function from indices to an index or a list of indices describes.

        ``ndim`` is needed if the function takes ``*args``.
        """
        index_map, separators = IndexMap.from_func_with_separators(
            mapping_function, ndim, inverse_index_map, index_dtype=index_dtype
        )
        if separators:
            raise IRValueError(
                "IndexMap.from_func: the function returned IndexMap.AXIS_SEPARATOR; use "
                "IndexMap.from_func_with_separators"
            )
        return index_map

    @staticmethod
    def from_func_with_separators(
        mapping_function: Callable[..., object],
        ndim: int | None = None,
        inverse_index_map: object = None,
        *,
        index_dtype: str = "int64",
    ) -> tuple[IndexMap, list[int]]:
        """As ``from_func``; also the positions where it returned ``IndexMap.AXIS_SEPARATOR``."""
        args, kwargs = _variables(mapping_function, ndim, index_dtype)
        returned = mapping_function(*args, **kwargs)
        indices: list[PrimExpr] = []
        separators: list[int] = []
        for value in _items(returned):
            if isinstance(value, str) and value == IndexMap.AXIS_SEPARATOR:
                separators.append(len(indices))
            elif isinstance(value, int) and not isinstance(value, IntImm):
                indices.append(op.const(value, index_dtype))
            elif isinstance(value, PrimExpr) or hasattr(value, "as_prim_expr"):
                indices.append(as_prim_expr(value))
            else:
                raise IRTypeError(
                    "IndexMap: expected the function to return expressions or "
                    f"IndexMap.AXIS_SEPARATOR, got {type(value).__name__}: {value!r}"
                )
        initial = [*args, *kwargs.values()]
        return IndexMap(initial, indices, inverse_index_map), separators

    def is_equivalent_to(self, other_map: IndexMap) -> bool:
        """Whether both maps are proved to give equal indices."""
        if len(self.initial_indices) != len(other_map.initial_indices):
            return False
        if len(self.final_indices) != len(other_map.final_indices):
            return False
        analyzer = Analyzer()
        common = [Var(var.name, "int64") for var in self.initial_indices]
        mine, its = self.map_indices(common), other_map.map_indices(common)
        for ours, theirs in zip(mine, its, strict=True):
            if not analyzer.can_prove_equal(ours, theirs):
                return False
        return True

    def map_indices(
        self, indices: Sequence[ExprLike], *, analyzer: Analyzer | None = None
    ) -> Array[PrimExpr]:
        """The indices that these indices are mapped to, simplified."""
        given = [as_prim_expr(index) for index in indices]
        self._check_rank(given, "map_indices", "indices")
        analyzer = analyzer or Analyzer()
        mapping = dict(zip(self.initial_indices, given, strict=True))
        mapped = [analyzer.simplify(_substituted(i, mapping)) for i in self.final_indices]
        return Array(mapped)

    def map_ranges(
        self, ranges: Sequence[RangeLike], *, analyzer: Analyzer | None = None
    ) -> Array[Range]:
        """The ranges of the mapped indices, padding included."""
        given = [as_range(dom) for dom in ranges]
        self._check_rank(given, "map_ranges", "ranges")
        return Array(_mapped_ranges(self, given, analyzer or Analyzer()))

    def map_shape(
        self, shape: Sequence[ExprLike], *, analyzer: Analyzer | None = None
    ) -> Array[PrimExpr]:
        """The shape of a buffer of that shape after the map, padding included."""
        extents = [as_prim_expr(extent) for extent in shape]
        self._check_rank(extents, "map_shape", "dimensions")
        mapped = self.map_ranges(
            [Range.from_min_extent(op.const(0, dim.dtype), dim) for dim in extents],
            analyzer=analyzer,
        )
        for position, dom in enumerate(mapped):
            if not op.is_const_int(dom.min, 0):
                raise IRValueError(
                    f"IndexMap.map_shape: index {position}, {self.final_indices[position]}, "
                    f"starts at {dom.min}, not at 0"
                )
        return Array([dom.extent for dom in mapped])

    def map_ndarray(self, arr_src: NDArray) -> NDArray:
        """The array with its elements moved; padding is 0."""
        self._check_rank(arr_src.shape, "map_ndarray", "dimensions")
        shape = [op.const(extent, "int64") for extent in arr_src.shape]
        target = tuple([_constant(extent) for extent in self.map_shape(shape)])
        source = arr_src._array
        digits = digits_of(self.final_indices, self.initial_indices, arr_src.shape)
        if digits is not None:
            return NDArray(reordered(source, digits, len(shape)), arr_src.dtype)
        moved = np.zeros(target + source.shape[len(shape) :], source.dtype)
        grid = np.indices(arr_src.shape, dtype=np.int64, sparse=True)
        values = dict(zip(self.initial_indices, grid, strict=True))
        places = [
            np.broadcast_to(_evaluated(index, values), arr_src.shape)
            for index in self.final_indices
        ]
        moved[tuple(places)] = source
        return NDArray(moved, arr_src.dtype)

    def inverse(self, shape: Sequence[Range | ExprLike]) -> IndexMap:
        """The inverse over a shape or ranges; IRValueError if the map is not bijective there."""
        inverse, _ = _inverse(self, _domain(shape), IterMapLevel.Bijective, "inverse")
        return inverse

    def non_surjective_inverse(
        self, shape: Sequence[Range | ExprLike]
    ) -> tuple[IndexMap, PrimExpr]:
        """The inverse, and the condition under which its indices are in padding."""
        return _inverse(self, _domain(shape), IterMapLevel.NoCheck, "non_surjective_inverse")

    def to_python_string(self, f_name_map: Callable[[Var], str | None] | None = None) -> str:
        """The map as a Python lambda (with an inverse: as a call of ``IndexMap.from_func``).

        ``f_name_map`` may give names to variables; the others keep theirs, made unique.
        """
        renamed = _renamed(self, f_name_map)
        text = _lambda_text(renamed)
        if self.inverse_index_map is None:
            return text
        inverse = _lambda_text(_renamed(self.inverse_index_map, f_name_map))
        return f"tvm.tir.IndexMap.from_func({text}, inverse_index_map={inverse})"

    def _check_rank(self, given: Sequence[object], what: str, things: str) -> None:
        if len(given) != len(self.initial_indices):
            raise IRValueError(
                f"IndexMap.{what}: expected {len(self.initial_indices)} {things}, got {len(given)}"
            )


# ---- from functions


def _variables(
    function: Callable[..., object], ndim: int | None, dtype: str
) -> tuple[list[Var], dict[str, Var]]:
    """New variables for the positional and the keyword parameters of a mapping function."""
    args: list[Var] = []
    kwargs: dict[str, Var] = {}
    rest = None
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = name
        elif parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs[name] = Var(name, dtype)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise IRValueError(f"IndexMap: the mapping function may not take **{name}")
        else:
            args.append(Var(name, dtype))
    if rest is not None:
        if ndim is None:
            raise IRValueError(f"IndexMap: the mapping function takes *{rest}; give ndim")
        missing = ndim - len(args) - len(kwargs)
        args += [Var(f"{rest}_{position}", dtype) for position in range(missing)]
    if ndim is not None and ndim != len(args) + len(kwargs):
        raise IRValueError(
            f"IndexMap: the mapping function takes {len(args) + len(kwargs)} indices, but ndim is "
            f"{ndim}"
        )
    return args, kwargs


def _items(returned: object) -> Iterator[object]:
    if isinstance(returned, Iterable) and not isinstance(returned, (PrimExpr, str)):
        yield from returned
    else:
        yield returned


# ---- evaluation

Indices: TypeAlias = Any
"""The values of an index: a numpy array, or a numpy scalar if all are equal."""


class _Substitute(Mutator):
    """Replaces variables; if the operands then have different integer types, promotes them."""

    def __init__(self, mapping: Mapping[Var, object]) -> None:
        self.mapping = mapping

    def visit_Var(self, var: Var) -> object:
        return self.mapping.get(var, var)

    def visit_BinaryExpr(self, expr: BinaryExpr) -> PrimExpr:
        return self.operands(expr)

    def visit_CompareExpr(self, expr: BinaryExpr) -> PrimExpr:
        return self.operands(expr)

    def operands(self, expr: BinaryExpr) -> PrimExpr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        return type(expr)(*op.match_types(a, b))


@deep_recursion
def _substituted(expr: PrimExpr, mapping: Mapping[Var, object]) -> PrimExpr:
    return _Substitute(mapping).visit(expr)


_NUMPY: Final[dict[type, Callable[[Indices, Indices], Indices]]] = {
    Add: np.add, Sub: np.subtract, Mul: np.multiply, FloorDiv: np.floor_divide,
    FloorMod: np.mod, Mod: np.fmod, Min: np.minimum, Max: np.maximum,
    Div: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
}  # fmt: skip


@deep_recursion
def _evaluated(expr: object, values: Mapping[Var, Indices]) -> Indices:
    return _value(expr, values)


def _value(expr: object, values: Mapping[Var, Indices]) -> Indices:
    """The value of an index for arrays of its variables."""
    if isinstance(expr, IntImm):
        return np.int64(expr.value)
    if isinstance(expr, Var) and expr in values:
        return values[expr]
    if isinstance(expr, BinaryExpr) and type(expr) in _NUMPY:
        return _NUMPY[type(expr)](_value(expr.a, values), _value(expr.b, values))
    if isinstance(expr, Cast):
        return _value(expr.value, values)
    raise IRTypeError(
        f"IndexMap.map_ndarray: {expr} is no sum, product, quotient or remainder of the indices"
    )


def _constant(extent: object) -> int:
    if not isinstance(extent, IntImm):
        raise IRValueError(f"IndexMap.map_ndarray: the mapped extent {extent} is not constant")
    return int(extent.value)


# ---- ranges and inverses


def _domain(shape: Sequence[Range | ExprLike]) -> list[Range]:
    return [dim if isinstance(dim, Range) else Range(0, dim) for dim in shape]


def _mapped_ranges(index_map: IndexMap, ranges: list[Range], analyzer: Analyzer) -> list[Range]:
    """The ranges of the mapped indices: the extent of each is that of its iteration map.

    These include padding: over 6 elements, ``[i // 4, i % 4]`` has the extents 2 and 4. If there is
    no iteration map, the ranges are the bounds of the values, without padding.
    """
    domain = dict(zip(index_map.initial_indices, ranges, strict=True))
    iter_map = detect_iter_map(
        index_map.final_indices, domain, True, IterMapLevel.NoCheck, False, analyzer=analyzer
    )
    bits = max([dom.extent.dtype.bits for dom in ranges], default=32)
    mapped = []
    for position, index in enumerate(index_map.final_indices):
        if iter_map.indices:
            total = iter_map.indices[position]
            extent: PrimExpr = op.const(1, total.dtype)
            for number, term in enumerate(total.args):
                reach = term.extent * term.scale
                extent = op.maximum(extent, reach) if number else reach
            low = total.base
        else:
            values = eval_set(index, domain, analyzer)
            if not values.is_bounded:
                raise IRValueError(
                    f"IndexMap: the bounds of index {position}, {index}, are unknown"
                )
            low = analyzer.simplify(values.min_value)
            extent = analyzer.simplify(values.max_value - values.min_value + 1)
        dtype = f"int{bits}"
        mapped.append(Range.from_min_extent(op.cast(dtype, low), op.cast(dtype, extent)))
    return mapped


def _inverse(
    index_map: IndexMap, ranges: list[Range], level: IterMapLevel, what: str
) -> tuple[IndexMap, PrimExpr]:
    """The inverse over ranges, and the condition under which its indices are in padding."""
    index_map._check_rank(ranges, what, "ranges")
    if index_map.inverse_index_map is not None:
        return index_map.inverse_index_map, op.const(False)
    analyzer = Analyzer()
    domain = dict(zip(index_map.initial_indices, ranges, strict=True))
    iter_map = detect_iter_map(
        index_map.final_indices, domain, True, level, False, analyzer=analyzer
    )
    if iter_map.errors:
        extents = ", ".join([str(dom.extent) for dom in ranges])
        raise IRValueError(
            f"IndexMap.{what}: {_lambda_text(index_map)} over [{extents}]: {iter_map.errors[0]}"
        )
    outputs = [
        Var(f"axis{position}", index.dtype)
        for position, index in enumerate(index_map.final_indices)
    ]
    inverse = inverse_affine_iter_map(iter_map.indices, outputs)
    results = []
    for var, dom in domain.items():
        if var not in inverse and not op.is_const_int(dom.extent, 1):
            raise IRValueError(
                f"IndexMap.{what}: {_lambda_text(index_map)} loses {var.name}, which runs over "
                f"{dom.extent} values"
            )
        results.append(analyzer.simplify(inverse.get(var, dom.min)))
    predicate = substitute(normalize_iter_map_to_expr(iter_map.padding_predicate), inverse)
    mapped = _mapped_ranges(index_map, ranges, analyzer)
    ends = analyzer_of(dict(zip(outputs, mapped, strict=True)))
    return IndexMap(outputs, results), _narrowed(ends.simplify(predicate, _PADDING_ROUNDS), ends)


def _narrowed(predicate: PrimExpr, analyzer: Analyzer) -> PrimExpr:
    """Rewrite ``low <= index`` to ``index == low`` where ``low`` is the index's largest value."""

    def narrow(expr: Node) -> Node | None:
        if isinstance(expr, LE) and analyzer.can_prove(LE(expr.b, expr.a)):
            return EQ(*((expr.b, expr.a) if isinstance(expr.a, IntImm) else (expr.a, expr.b)))
        return None

    return rewrite(predicate, narrow)


# ---- text


def _renamed(index_map: IndexMap, name_of: Callable[[Var], str | None] | None) -> IndexMap:
    """The map with unique names of variables; ``name_of`` may choose them."""
    taken: set[str] = set()
    mapping: dict[Var, Var] = {}
    if name_of is not None:
        for var in collect(index_map.final_indices, Var):
            name = name_of(var)
            if name is not None:
                taken.add(name)
                mapping[var] = Var(name, var.dtype)
    for var in index_map.initial_indices:
        if var in mapping:
            continue
        name = free_name(var.name, taken)
        if name != var.name:
            mapping[var] = Var(name, var.dtype)
    initial = [mapping.get(var, var) for var in index_map.initial_indices]
    return IndexMap(initial, [substitute(i, mapping) for i in index_map.final_indices])


def _lambda_text(index_map: IndexMap) -> str:
    names = ", ".join([var.name for var in index_map.initial_indices])
    indices = " ".join([f"{index}," for index in index_map.final_indices])
    return f"lambda {names}: ({indices})"
