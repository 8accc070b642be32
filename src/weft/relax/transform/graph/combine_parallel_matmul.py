"""CombineParallelMatmul: products of one matrix with several others become one product and a split.

Before: ``q = matmul(x, wq); k = matmul(x, wk)``. After: ``p = matmul(x, concat((wq, wk)));
parts = split(p); q = parts[0]; k = parts[1]``. A bias and an activation are combined as well if
every branch has them. One large product uses a machine better than several small ones (TASO, Jia et
al., SOSP 2019, finds the same rewrite by search).

Products of a dataflow block are combined if they have the same left side, and right sides of the
same rank that agree in all but the last dimension. The split needs constant widths, except for the
last part. A branch that needs the result of another one is left out. A block with an in-place call
stays as it is, since reads must not move across it.

The bindings have positions (slots), and a group is emitted before the first of its branches. If an
input of a later branch is computed after that, only the slots in between are reordered. The cost
grows with the distance of the branches, so the pass is linear on real models.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from weft.ir.functor import collect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax import op
from weft.relax.analysis.bindings import uses
from weft.relax.analysis.written import targets
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, same_dims
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.relax.transform.passes import define_function_pass

FCheck = Callable[[Any, list[Any], list[Any], dict[Var, Any]], bool]
"""``(left side, right sides, biases, values of variables)`` -> whether to combine them."""


def _is_activation(call: Call) -> bool:
    """Whether a call is an element-wise operator of ``relax.nn`` with a single argument."""
    is_of_nn = has(call.op, Trait.ELEMENTWISE) and call.op.name.startswith("relax.nn.")
    return is_of_nn and len(call.args) == 1 and not call.attrs


def combine_parallel_matmul(func: Function, check: FCheck | None = None) -> Function:
    """The function with one product instead of those that share their left side.

    ``check(lhs, rhs, bias, bindings)`` refuses a group by returning False.
    """
    return _Combiner(check or (lambda *_: True)).visit_expr(func)


CombineParallelMatmul = define_function_pass("CombineParallelMatmul", combine_parallel_matmul)


@dataclass(eq=False)
class _Branch:
    """A product with its bias and activation: ``root`` is the result, ``inner`` the variables
    before it.
    """

    matmul: Call
    root: Var
    inner: tuple[Var, ...] = ()
    bias: Any = None
    activation: Any = None

    def chain(self) -> tuple[Var, ...]:
        """All variables of the branch, starting with the product."""
        return (*self.inner, self.root)

    @property
    def rhs(self) -> Any:
        """The right side."""
        return self.matmul.args[1]

    @property
    def dims(self) -> Any:
        """The shape of the right side."""
        return tensor_dims(self.rhs.struct_info)


@dataclass(eq=False)
class _Group:
    """Branches that become one product, in the order of its parts."""

    lhs: Any
    branches: list[_Branch]
    parts: Var | None = None
    """The tuple of the branches' results, once it is emitted."""

    def inputs(self) -> list[Any]:
        """The values that must be computed before the product."""
        return [self.lhs, *(b.rhs for b in self.branches), *(b.bias for b in self.branches)]


class _Combiner(PyExprMutator):
    def __init__(self, check: FCheck) -> None:
        super().__init__()
        self.check = check
        self.values: dict[Var, Any] = {}
        self.part: dict[Var, tuple[_Group, int]] = {}
        self.dropped: set[Var] = set()

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        plan = _Plan(block, self.check, self.values)
        groups = plan.combined()
        if not groups:
            return super().visit_dataflow_block_(block)
        for group in groups:
            for index, branch in enumerate(group.branches):
                self.part[branch.root] = group, index
                self.dropped.update(branch.inner)
        self.builder_.begin_dataflow_block()
        for item in plan.items():
            if isinstance(item, _Group):
                self.emit_group(item)
            else:
                self.visit_binding(item)
        return self.builder_.end_block()

    def visit_binding(self, binding: Binding) -> None:
        self.values[binding.var] = binding.value
        if binding.var in self.dropped:
            return
        place = self.part.get(binding.var)
        if place is None or not isinstance(binding, VarBinding):
            super().visit_binding(binding)
            return
        group, index = place
        self.reemit(binding, binding.var, self.builder_.normalize(TupleGetItem(group.parts, index)))

    def emit_group(self, group: _Group) -> None:
        """Emit the product of a group and its split."""
        emit, first = self.builder_.emit, group.branches[0]
        lhs = self.visit_expr(group.lhs)
        rhs = [self.visit_expr(branch.rhs) for branch in group.branches]
        weights = emit(op.concat(Tuple(rhs), len(first.dims) - 1))
        result = emit(op.matmul(lhs, weights, first.matmul.struct_info.dtype))
        if first.bias is not None:
            bias = [self.visit_expr(branch.bias) for branch in group.branches]
            axis = len(tensor_dims(first.bias.struct_info) or ()) - 1
            result = emit(op.add(result, emit(op.concat(Tuple(bias), axis))))
        if first.activation is not None:
            result = emit(first.activation.get_attr("function")(result))
        group.parts = emit(_parts(result, [branch.dims[-1] for branch in group.branches]))


class _Plan:
    """Which products of a block are combined, and the new order of its bindings."""

    def __init__(self, block: DataflowBlock, check: FCheck, values: dict[Var, Any]) -> None:
        self.check = check
        self.bindings = {binding.var: binding for binding in block.bindings}
        self.values = values | {b.var: b.value for b in block.bindings}
        self.slots: list[list[Any]] = [[binding] for binding in block.bindings]
        self.place = {binding.var: index for index, binding in enumerate(block.bindings)}
        self.group_of: dict[Var, _Group] = {}
        self.users: dict[Var, list[Any]] = {}

    def items(self) -> list[Any]:
        """Bindings and groups, in the order in which to emit them."""
        return [item for slot in self.slots for item in slot]

    def combined(self) -> list[_Group]:
        """Find the groups, and order the slots so that each group has its inputs before it."""
        candidates = self.candidates()
        if not candidates or any(targets(binding.value) for binding in self.bindings.values()):
            return []
        for binding in self.bindings.values():
            for var, count in uses(binding.value).items():
                self.users.setdefault(var, []).extend([binding] * count)
        groups = [self.group(matmuls) for matmuls in candidates]
        return [group for group in groups if group is not None]

    def candidates(self) -> list[list[Any]]:
        """Lists of products with the same left side, and right sides of the same rank and dtype."""
        by_input: dict[Any, list[Any]] = {}
        for binding in self.bindings.values():
            value = binding.value
            if not isinstance(value, Call) or value.op is not _MATMUL:
                continue
            lhs, rhs = value.args
            dims = tensor_dims(rhs.struct_info)
            if isinstance(lhs, Var) and isinstance(rhs, Var | Constant) and dims and len(dims) > 1:
                if tensor_dims(lhs.struct_info) is not None:
                    dtypes = str(rhs.struct_info.dtype), str(value.struct_info.dtype)
                    by_input.setdefault((lhs, len(dims), dtypes), []).append(binding)
        return [group for group in by_input.values() if len(group) > 1]

    def group(self, matmuls: Sequence[Any]) -> _Group | None:
        """Make a group of products and insert it; None if they cannot be combined."""
        branches = [self.branch(binding) for binding in matmuls]
        first = branches[0].dims[:-1]
        if not all(same_dims(first, branch.dims[:-1]) for branch in branches):
            return None
        whole, bare = _of_one_kind(branches), [_Branch(b.matmul, b.chain()[0]) for b in branches]
        # If two products are added, neither is the bias of the other: try without bias, too.
        branches = _cuttable(max(self.independent(whole), self.independent(bare), key=len))
        lhs = matmuls[0].value.args[0]
        biases = [branch.bias for branch in branches if branch.bias is not None]
        if len(branches) < 2:
            return None
        if not self.check(lhs, [branch.rhs for branch in branches], biases, self.values):
            return None
        group = _Group(lhs, branches)
        self.insert(group)
        return group

    def branch(self, binding: Binding) -> _Branch:
        """The branch of a product: itself, and the bias and activation that follow it."""
        branch = _Branch(binding.value, binding.var)
        user = self.only_user(binding.var)
        if user is not None and user.value.op is _ADD:
            left, right = user.value.args
            bias = right if left is binding.var else left
            if _is_bias(bias, branch, binding.var):
                branch.bias, branch.root, branch.inner = bias, user.var, (binding.var,)
                user = self.only_user(user.var)
        if user is not None and _is_activation(user.value):
            branch.activation = user.value.op
            branch.root, branch.inner = user.var, (*branch.inner, branch.root)
        return branch

    def only_user(self, var: Var) -> Any:
        """The binding of the only call that uses a variable; None if there are more or none."""
        users = self.users.get(var, ())
        if not isinstance(var, DataflowVar) or len(users) != 1:
            return None
        return users[0] if isinstance(users[0].value, Call) else None

    # Order

    def needs(self, item: Any) -> list[Any]:
        """The variables that an item needs; for a part of a combined product, its group."""
        if isinstance(item, _Group):
            return item.inputs()
        if item.var in self.group_of:
            return [self.group_of[item.var]]
        return collect(item.value, Var)

    def defines(self, item: Any) -> Any:
        """The variable (or group) by which other items refer to an item."""
        return item if isinstance(item, _Group) else item.var

    def independent(self, branches: list[_Branch]) -> list[_Branch]:
        """The branches without those that need the result of another one."""
        roots = {branch.root: branch for branch in branches}
        places = [self.place[var] for branch in branches for var in branch.chain()]
        tainted: set[Any] = set()
        kept = []
        for slot in self.slots[min(places) : max(places) + 1]:
            for item in slot:
                name = self.defines(item)
                if any(used in tainted for used in self.needs(item)):
                    tainted.add(name)
                elif name in roots:
                    kept.append(roots[name])
                    tainted.add(name)
        return [branch for branch in branches if branch in kept]

    def insert(self, group: _Group) -> None:
        """Insert a group before its first root and after its inputs."""
        first = min(self.place[branch.root] for branch in group.branches)
        needed = [self.place[v] for v in group.inputs() if isinstance(v, Var) and v in self.place]
        last = max([first, *needed])
        tainted: set[Any] = {branch.root for branch in group.branches}
        early: list[Any] = []
        late: list[Any] = []
        for slot in self.slots[first : last + 1]:
            is_late = any(
                self.defines(item) in tainted or any(used in tainted for used in self.needs(item))
                for item in slot
            )
            (late if is_late else early).append(slot)
            if is_late:
                tainted.update(self.defines(item) for item in slot)
        self.slots[first : last + 1] = [*early, *late]
        self.slots[first + len(early)].insert(0, group)
        for branch in group.branches:
            self.group_of[branch.root] = group
            for var in branch.inner:
                self.slots[self.place[var]] = []
        for index in range(first, last + 1):
            for item in self.slots[index]:
                if not isinstance(item, _Group):
                    self.place[item.var] = index


_MATMUL, _ADD = Op.get("relax.matmul"), Op.get("relax.add")


def _parts(whole: Var, widths: Sequence[Any]) -> Call:
    """The call that splits a product into parts of these widths, which add up to its own."""
    cuts = list(itertools.accumulate(constant_value(width) or 0 for width in widths[:-1]))
    info: Any = whole.struct_info
    call: Call = op.split(whole, cuts, info.ndim - 1)
    lead = list(tensor_dims(info) or ())[:-1]
    call.struct_info = TupleStructInfo(
        [TensorStructInfo([*lead, width], info.dtype, info.vdevice) for width in widths]
    )
    return call


def _is_bias(bias: Any, branch: _Branch, product: Var) -> bool:
    """Whether an operand is as wide as the branch and does not broadcast the product."""
    dims = tensor_dims(getattr(bias, "struct_info", None))
    shape = tensor_dims(product.struct_info)
    if bias is product or not isinstance(bias, Var | Constant) or not dims or shape is None:
        return False
    if len(dims) > len(shape) or not same_dims(dims[-1:], branch.dims[-1:]):
        return False
    return all(
        constant_value(dim) == 1 or same_dims([dim], [extent])
        for dim, extent in zip(dims[::-1], shape[::-1], strict=False)
    )


def _of_one_kind(branches: list[_Branch]) -> list[_Branch]:
    """The branches without the bias and activation that not all of them have."""
    dims = [tensor_dims(b.bias.struct_info) if b.bias is not None else None for b in branches]
    rest = [None if shape is None else shape[:-1] for shape in dims]
    has_bias = all(same_dims(rest[0], shape) for shape in rest)
    is_bare = all(branch.bias is None for branch in branches)
    kinds = {branch.activation for branch in branches}
    if len(kinds) == 1 and (has_bias or is_bare):
        return branches
    if has_bias:
        return [_Branch(b.matmul, b.chain()[1], b.chain()[:1], b.bias) for b in branches]
    return [_Branch(b.matmul, b.chain()[0]) for b in branches]


def _cuttable(branches: list[_Branch]) -> list[_Branch]:
    """The branches of constant width, followed by at most one of symbolic width."""
    static = [b for b in branches if constant_value(b.dims[-1]) is not None]
    return static + [b for b in branches if constant_value(b.dims[-1]) is None][:1]
