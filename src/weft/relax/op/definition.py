"""``@operator`` defines an operator: all that weft knows about it stands in one row.

::

    @operator(
        "relax.nn.leakyrelu", same_as_float_input, te=topi.nn.leaky_relu, numpy=reference.leakyrelu,
        traits=Trait.ELEMENTWISE,
    )
    def leakyrelu(data: Expr, alpha: float = 0.01) -> None:
        \"\"\"x where x > 0, else alpha * x.\"\"\"

The signature is TVM 0.20's. Parameters whose annotation is a key of ``ARGUMENTS`` become the call's
arguments, all others its attributes, in order; values are converted as the annotation says. The
body is usually empty; it may return a dict (``-> Replacements``) from a parameter's name to the
value that replaces the given one, for a default that depends on other parameters. The second
argument of ``@operator`` is the struct-info rule: the block builder's ``normalize`` calls it with
the finished Call, and it returns the struct info or raises an error.

- ``te``: the tensor expression; it is called with the arguments, then the attributes, in order
  (weft.relax.op.lowering). ``kernel`` names its PrimFunc, by default after ``te``.
- ``legalize``: the rule of LegalizeOps itself, for an operator that needs more than a tensor
  expression.
- ``packed``: the registered function that computes an operator without a kernel: the shape of its
  result depends on values, or a library computes it. It is called with the arguments, then the
  attributes, which must be numbers, in order.
- ``numpy``: the reference; it is called with the arguments' values, then the attributes by name
  (weft.relax.op.reference.rule).
- ``requires`` and ``window``: extents that must be equal (weft.relax.op.requirements).
- ``traits``: properties that passes may ask for (weft.ir.traits).

All of these are attributes of the Op: ``op.get_attr("numpy")``, ``op.get_attr("traits")``; the rule
of LegalizeOps is its ``FLegalize``. The builder function is in ``FUNCTIONS`` under the name without
``relax.``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import numpy as np

from weft.ir.attrs import Attrs
from weft.ir.expr import Extent, PrimExpr, RelaxExpr
from weft.ir.node import Array, freeze
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.distributed.sharding import infer_operator
from weft.relax.distributed.struct_info import DTensorStructInfo, replicated
from weft.relax.expr import (
    Call,
    Constant,
    Expr,
    PrimValue,
    RelaxLike,
    ShapeExpr,
    Tuple,
    as_relax_expr,
    const,
)
from weft.relax.op.lowering import Rule, TensorExpression, TeRule
from weft.relax.op.reference.rule import Reference
from weft.relax.op.requirements import Reach, Requires, agreeing, fitting
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.support import plugins, slots
from weft.support.annotations import spelled
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, TVMError
from weft.support.facade import is_module
from weft.support.parameters import mismatch
from weft.support.registration import refuse_second

Infer = Callable[[Call], StructInfo]
FUNCTIONS: Final[dict[str, Callable[..., Call]]] = {}
"""Builder functions by name without ``relax.``: ``add``, ``nn.relu``."""

Replacements = Mapping[str, object]
"""What a row's body returns: parameter name -> the value that replaces the given one."""

Exprs = Annotated[Expr | Sequence[RelaxLike], "Exprs"]
"""Annotation: several tensors (a list or a tuple), which become one Tuple argument."""
Shape = Annotated[Expr | Extent | Sequence[Extent], "Shape"]
"""Annotation: a shape (a list of ints and expressions, a ShapeExpr, or an Expr)."""
Prim = Annotated[Expr | PrimExpr | float, "Prim"]
"""Annotation: a scalar argument (a PrimValue)."""
Ints = Annotated[Extent | Sequence[Extent], "Ints"]
"""Annotation: an attribute that is a list of ints; an int becomes a list of one."""
Dtype = Annotated[str, "Dtype"]
"""Annotation: an attribute that is a data type; None or "" is void."""


def as_exprs(value: Expr | Sequence[RelaxLike]) -> Expr:
    """One Tuple argument from a list of tensors, or an expression that is a tuple already."""
    return value if isinstance(value, Expr) else Tuple([as_relax_expr(item) for item in value])


def as_shape(value: Expr | Extent | Sequence[Extent]) -> Expr:
    """A shape argument."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int | PrimExpr):
        value = [value]
    return ShapeExpr([int(item) if isinstance(item, np.integer) else item for item in value])


def as_prim(value: Expr | PrimExpr | float) -> Expr:
    """A scalar argument."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, PrimExpr):
        return PrimValue(value)
    number = as_relax_expr(value.item() if isinstance(value, np.generic) else value)
    if not isinstance(number, PrimValue):
        raise IRTypeError(f"expected a number, got {value!r}")
    return number


def as_operand(value: RelaxLike) -> RelaxExpr:
    """A tensor argument: what ``as_relax_expr`` takes."""
    if isinstance(value, NDArray | np.ndarray):
        return const(value)
    return as_relax_expr(value)


ARGUMENTS: Final[dict[str, Callable[[Any], RelaxExpr]]] = {
    "Expr": as_operand,
    "Exprs": as_exprs,
    "Shape": as_shape,
    "Prim": as_prim,
}
"""Annotation -> conversion of a call's argument."""


def as_int(value: object) -> Extent:
    """An int attribute; symbolic expressions stay."""
    if isinstance(value, PrimValue):
        value = value.value
    if isinstance(value, PrimExpr) and not hasattr(value, "value"):
        return value
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise IRTypeError(f"expected an int, got {value!r}")
    return int(value)


def as_ints(value: object) -> Array[Extent]:
    """A list of ints."""
    return Array([as_int(v) for v in (value if isinstance(value, list | tuple) else [value])])


def as_dtype(value: str | None) -> DataType:
    """A data type; None and "" are void."""
    return DataType("void" if value is None or value == "" else value)


ATTRIBUTES: Final[dict[str, Callable[[Any], object]]] = {
    "int": as_int,
    "float": float,
    "bool": bool,
    "str": str,
    "Ints": as_ints,
    "Dtype": as_dtype,
    "object": freeze,
    "Any": freeze,
}
"""Annotation -> conversion of an attribute."""


Body = Callable[..., Replacements | None]
Converted = TypeVar("Converted")


class _Definition:
    """The conversions of one operator's parameters, prepared once."""

    op: Op

    def __init__(self, name: str, body: Body) -> None:
        self.body = body
        self.signature = inspect.signature(body)
        self.args: list[tuple[str, Callable[[Any], RelaxExpr], bool]] = []
        self.attrs: list[tuple[str, Callable[[Any], object]]] = []
        for parameter in self.signature.parameters.values():
            kind = spelled(parameter.annotation)
            optional, kind = kind.endswith(" | None"), kind.removesuffix(" | None")
            if kind in ARGUMENTS:
                self.args.append((parameter.name, ARGUMENTS[kind], optional))
            elif kind in ATTRIBUTES:
                self.attrs.append((parameter.name, ATTRIBUTES[kind]))
            else:
                raise IRTypeError(
                    f"{name}: {parameter.name} is annotated {kind}; expected one of "
                    f"{', '.join([*ARGUMENTS, *ATTRIBUTES])}"
                )
        self.name = name

    def register(self, override: bool) -> Op:
        """Register the operator; IRValueError if another row defines it already."""
        self.op = Op.register(self.name)
        refuse_second("the operator", self.name, self.op.has_attr("infer_struct_info"), override)
        return self.op

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            adapted = _legacy(self.op.name, args, kwargs)
            if adapted is None:
                raise IRTypeError(
                    f"{self.op.name}: {error}; its parameters are {self.signature}"
                ) from None
            bound = self.signature.bind(*adapted[0], **adapted[1])
        bound.apply_defaults()
        return bound.arguments

    def build(self, *args: object, **kwargs: object) -> Call:
        values = self.bind(args, kwargs)
        replaced = self.body(**values)
        if replaced:
            values.update(replaced)
        operands = []
        for name, convert, optional in self.args:
            value = values[name]
            if value is None:
                if not optional:
                    raise IRTypeError(f"{self.op.name}: {name}: expected a tensor, got None")
                continue
            operands.append(self.converted(name, convert, value))
        attrs = Attrs()
        if self.attrs:
            items = {}
            for name, to_attribute in self.attrs:
                value = values[name]
                items[name] = (
                    None
                    if value is None and to_attribute is not as_dtype
                    else self.converted(name, to_attribute, value)
                )
            attrs = Attrs(items)
        return Call(self.op, operands, attrs)

    def check_functions(
        self,
        infer: Infer,
        te: TensorExpression | None,
        legalize: Rule | None,
        numpy: Reference | None,
    ) -> None:
        """Raise IRTypeError if a function of the row does not accept its arguments."""
        args, attrs = [name for name, _, _ in self.args], [name for name, _ in self.attrs]
        self._check_takes("the struct-info rule", infer, ["call"])
        self._check_takes("te", te, [*args, *attrs])
        self._check_takes("legalize", legalize, ["builder", "call"])
        self._check_takes("numpy", numpy, args, attrs)

    def _check_takes(
        self,
        what: str,
        function: Callable[..., object] | None,
        args: list[str],
        keywords: list[str] | None = None,
    ) -> None:
        wrong = None if function is None else mismatch(function, args, keywords or ())
        if wrong is not None:
            raise IRTypeError(f"{self.name}: {what}: {wrong}")

    def te_rule(self, te: TensorExpression, kernel: str | None, traits: Trait) -> Rule:
        """The rule of LegalizeOps that computes the operator by a tensor expression."""
        own = getattr(te, "__name__", "<lambda>")
        short = self.op.name.rpartition(".")[2] if own == "<lambda>" else own
        defaults = self.signature.parameters
        return TeRule(
            te,
            kernel or short,
            len(self.args),
            tuple((name, defaults[name].default) for name, _ in self.attrs),
            bool(traits & Trait.ELEMENTWISE),
        )

    def problem(self, call: Call) -> str | None:
        """What is wrong with the arguments or attributes of a call; None if nothing is.

        A call that was built by hand, or read from a file, may have any arguments and attributes.
        """
        names = ", ".join([name for name, _, _ in self.args]) or "none"
        least = sum(not optional for _, _, optional in self.args)
        if not least <= len(call.args) <= len(self.args):
            return f"{self.op.name} takes the arguments {names}, got {len(call.args)}"
        for name, convert in self.attrs:
            if name not in call.attrs:
                return f"{self.op.name} has an attribute {name}, and the call does not say it"
            value = call.attrs[name]
            if value is None:
                continue
            try:
                self.converted(name, convert, value)
            except TVMError as error:
                return f"{error}"
        return None

    def converted(self, name: str, convert: Callable[[Any], Converted], value: object) -> Converted:
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            raise IRTypeError(f"{self.op.name}: {name}: {error}") from error


def _legacy(
    name: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[Sequence[object], Mapping[str, object]] | None:
    try:
        legacy = slots.legacy.get()
    except ModuleNotFoundError:
        return None
    adapted: tuple[Sequence[object], Mapping[str, object]] | None
    adapted = legacy.adapt(name, args, kwargs)
    return adapted


def operator(
    name: str,
    infer: Infer,
    *,
    te: TensorExpression | None = None,
    kernel: str | None = None,
    legalize: Rule | None = None,
    packed: str | None = None,
    numpy: Reference | None = None,
    requires: Requires | None = None,
    window: Reach | None = None,
    pure: bool = True,
    traits: Trait = Trait.NONE,
    override: bool = False,
) -> Callable[[Body], Callable[..., Call]]:
    """Define the operator ``name``; see the module's docstring.

    Raises:
        IRValueError: the name does not begin with ``relax.``, or there is an operator of that name
            and ``override`` is not given.
        IRTypeError: it has both ``te`` and ``legalize``, or one of the functions does not take what
            it is called with.
    """
    if not name.startswith("relax."):
        raise IRValueError(
            f"{name}: expected a name that begins with 'relax.': relax.{name}, which scripts "
            f"write R.{name}"
        )
    if te is not None and legalize is not None:
        raise IRTypeError(f"{name}: expected te or legalize, got both")

    def define(body: Body) -> Callable[..., Call]:
        definition = _Definition(name, body)
        if not str(body.__module__).startswith("weft."):  # weft's own rows are checked by tests
            definition.check_functions(infer, te, legalize, numpy)

        @functools.wraps(body)
        def build(*args: object, **kwargs: object) -> Call:
            return definition.build(*args, **kwargs)

        signature = definition.signature.replace(return_annotation=Call)
        build.__signature__ = signature  # type: ignore[attr-defined]  # what help() shows
        op = definition.register(override)
        op.attributes.update(
            infer_struct_info=infer,
            params=tuple(arg[0] for arg in definition.args),
            attrs=tuple(attr[0] for attr in definition.attrs),
            pure=pure,
            traits=traits,
            function=build,
            form_problem=definition.problem,
        )
        facts = {"te": te, "numpy": numpy, "packed": packed}
        op.attributes.update({key: fact for key, fact in facts.items() if fact is not None})
        rule = legalize if te is None else definition.te_rule(te, kernel, traits)
        if rule is not None:
            rule = rule if window is None else fitting(rule, window)
            rule = rule if requires is None else agreeing(rule, requires)
            op.set_attr("FLegalize", rule, plevel=0)  # so that a user's rule can replace it
        FUNCTIONS[name.removeprefix("relax.")] = build
        return build

    return define


def function_of_plugin(name: str, package: str) -> Callable[..., Call] | None:
    """The builder of a plug-in's operator, by its name without ``relax.``; None if there is none.

    ``package`` is the namespace that was asked for the name; None also if it has such a module.
    """
    last = name.rpartition(".")[2]
    if last.startswith("_") or is_module(package, last):
        return None
    plugins.load_group(plugins.OPERATORS)
    return FUNCTIONS.get(name)


class Namespace:
    """The operators of a dotted prefix without a module of its own: ``relax.op.acme``."""

    def __init__(self, prefix: str) -> None:
        self.prefix_ = prefix

    def __call__(self, *args: object, **kwargs: object) -> Call:
        raise IRTypeError(
            f"relax.op.{self.prefix_}: expected the name of an operator after it "
            f"(relax.op.{self.prefix_}.name), found a call of the group"
        )

    def __getattr__(self, name: str) -> Callable[..., Call]:
        function = FUNCTIONS.get(f"{self.prefix_}.{name}")
        if function is None:
            raise AttributeError(f"there is no graph operator {self.prefix_}.{name}")
        return function


def peek_info(operand: object) -> StructInfo | None:
    """The struct info of an operand, inferred here if it is a call that was not emitted yet."""
    info: StructInfo | None = getattr(operand, "struct_info", None)
    if info is None and isinstance(operand, Call) and isinstance(operand.op, Op):
        rule = operand.op.get_attr("infer_struct_info")
        if rule is not None and all(peek_info(arg) is not None for arg in operand.args):
            info = operand.struct_info = infer_operator(operand, rule)
    return info


def match_scalars(*operands: RelaxLike) -> list[RelaxLike]:
    """The operands, with Python numbers converted to constants of the first tensor's dtype."""
    dtype, mesh = None, None
    for operand in operands:
        info = peek_info(operand)
        whole = info.tensor_sinfo if isinstance(info, DTensorStructInfo) else info
        if isinstance(whole, TensorStructInfo) and whole.dtype != "void":
            dtype = whole.dtype
            mesh = info.device_mesh if isinstance(info, DTensorStructInfo) else None
            break
    matched: list[RelaxLike] = []
    for operand in operands:
        if isinstance(operand, bool | int | float | np.generic) and dtype is not None:
            number = const(operand, str(dtype))
            if mesh is not None:
                number = Constant(number.data, replicated(number.struct_info, mesh))
            matched.append(number)
        else:
            matched.append(operand)  # converted, or refused with its name, by the definition
    return matched
