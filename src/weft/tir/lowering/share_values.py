"""ShareValues: a value that several branches of an expression use is computed once, before them.

In ``T.if_then_else(c, x, 0) + x`` the node ``x`` is used twice, the first time in a branch. What
code generation computes in a branch is not known after it, so that ``x`` would be computed twice;
and in thirty steps ``x = T.if_then_else(c, x, 0) + x`` a billion times. So a node that has a choice
in it, and is used in a branch and elsewhere, gets a variable before the whole expression::

    T.if_then_else(c, x, 0) + x          T.Let(T.if_then_else(c, v, 0) + v, where={v: x})

This is right where the value is used whatever the conditions say. Others are only computed early if
there are very many ways to them (``_MANY``): at once where they cannot fault; else under ``need``,
which is true if any condition around a use is, so that the program faults only where it would::

    T.if_then_else(c, x, 0) * T.if_then_else(d, x, 1)

    need = c or d
    v = T.if_then_else(need, x, 0)
    T.if_then_else(c, v, 0) * T.if_then_else(d, v, 1)
"""

from __future__ import annotations

from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, contains
from weft.ir.node import expect
from weft.ir.sharing import post_order_of, rebound
from weft.tir import expr as e
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import is_call
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.accesses import is_within
from weft.tir.lowering.facts import StatementFacts, facts_of
from weft.tir.lowering.faults import Faults
from weft.tir.lowering.proofs import Bounds
from weft.tir.lowering.ranges import Ranges
from weft.tir.stmt import DeclBuffer
from weft.tir.transform.prim_func_pass import define_pass

_MANY: Final = 16
"""How many ways through an expression may lead to a value before it is computed early."""
_TRUE: Final = IntImm("bool", 1)


def arms_of(node: PrimExpr) -> tuple[tuple[PrimExpr, bool], ...]:
    """The parts that are computed on a condition only, each with what the condition has to be.

    ``T.if_then_else(c, x, y)`` → (x, True), (y, False); ``a and b`` → (b, True).
    """
    if isinstance(node, e.Select):
        return (node.true_value, True), (node.false_value, False)
    if isinstance(node, (e.And, e.Or)):
        return ((node.b, isinstance(node, e.And)),)
    if is_call(node, "if_then_else"):
        return (node.args[1], True), (node.args[2], False)
    return ()


def _condition_of(node: PrimExpr) -> PrimExpr:
    """The condition of a node that has arms."""
    if isinstance(node, e.Select):
        return node.condition
    return node.a if isinstance(node, (e.And, e.Or)) else expect(node, e.Call).args[0]


def _values_of(node: PrimExpr) -> list[PrimExpr]:
    """The operands of a node. The body of a Let is none: its variable has no value outside."""
    if isinstance(node, e.Let):
        return [node.value]
    return [part for part in node._parts_() if isinstance(part, PrimExpr)]


def _without_arms(node: PrimExpr) -> list[PrimExpr]:
    """The operands of a node that are computed whatever its condition says."""
    arms = {id(arm) for arm, _ in arms_of(node)}
    return [part for part in _values_of(node) if id(part) not in arms]


class Uses:
    """How often, and where, the nodes of an expression are used.

    Attributes (nodes are keys by their ``id``):
        order: all nodes, operands first.
        ways: node -> how many ways lead to it from the root.
        sure: the nodes that are computed whatever the conditions say.
    """

    def __init__(self, root: PrimExpr) -> None:
        self.root = root
        self.order = post_order_of(root, _values_of)
        self.ways: dict[int, int] = {id(root): 1}
        self.sure = {id(root)}
        in_branch: set[int] = set()
        uses = dict.fromkeys(map(id, self.order), 0)
        for node in reversed(self.order):
            for part in _values_of(node):
                uses[id(part)] += 1
                self.ways[id(part)] = self.ways.get(id(part), 0) + self.ways[id(node)]
                if id(node) in in_branch:
                    in_branch.add(id(part))
            in_branch.update([id(arm) for arm, _ in arms_of(node)])
            if id(node) in self.sure:
                self.sure.update(map(id, _surely_needed(node)))
        has_choice: set[int] = set()
        self.repeated: list[PrimExpr] = []
        """The nodes with a choice in them that are used in a branch and elsewhere, operands first.
        """
        for node in self.order:
            if arms_of(node) or any(id(part) in has_choice for part in _values_of(node)):
                has_choice.add(id(node))
                if uses[id(node)] > 1 and id(node) in in_branch:
                    self.repeated.append(node)


def _surely_needed(node: PrimExpr) -> list[PrimExpr]:
    """The nodes that are computed wherever ``node`` is: its operands without its arms, and those
    that both arms compute.
    """
    parts, arms = _without_arms(node), arms_of(node)
    if len(arms) == 2:
        yes, no = (_computed_with(arm) for arm, _ in arms)
        parts += [part for key, part in yes.items() if key in no]
    return parts


def _computed_with(arm: PrimExpr) -> dict[int, PrimExpr]:
    """The nodes that are surely computed with an arm, by ``id``; none in the arms within it."""
    reached: dict[int, PrimExpr] = {}
    waiting = [arm]
    while waiting:
        node = waiting.pop()
        if id(node) not in reached:
            reached[id(node)] = node
            waiting += _without_arms(node)
    return reached


class _Needs:
    """Decides which repeated nodes get a variable, and under which condition it is computed.

    The nodes are decided from the root down: when a node is needed follows from when those that use
    it are. Its need is an expression over conditions of the program. All needs are computed first,
    so a condition that contains a repeated node, which gets its variable later, cannot be part of
    one.
    """

    def __init__(self, uses: Uses, faults: Faults) -> None:
        self.uses = uses
        self.early: dict[int, PrimExpr] = {}
        """The nodes (by ``id``) that get a variable -> their need; ``_TRUE``: always computed."""
        self.flags: list[tuple[e.Var, PrimExpr]] = []
        """Variables of needs with their values, in the order of their definitions."""
        self._reached: dict[int, PrimExpr | None] = {}
        """Repeated nodes -> when the nodes that were decided so far use them; None: not known."""
        repeated = {id(node) for node in uses.repeated}
        self._open = _with_any(uses.order, repeated)
        self._spread(uses.root, _TRUE, repeated)
        for node in reversed(uses.order):
            if id(node) in repeated:
                self._decide(node, faults, repeated)

    def _decide(self, node: PrimExpr, faults: Faults, repeated: set[int]) -> None:
        """Decide whether a repeated node gets a variable (see the module's docstring)."""
        key = id(node)
        need: PrimExpr | None = self._reached.get(key)
        if key in self.uses.sure:
            need = _TRUE
        elif self.uses.ways[key] <= _MANY:
            need = None
        elif not faults.can_fault(node):
            need = _TRUE
        elif node.dtype.lanes != 1 or node.dtype.is_handle:
            need = None
        if need is not None:
            if not isinstance(need, (e.Var, IntImm)):
                self.flags.append((e.Var("need", "bool"), need))
                need = self.flags[-1][0]
            self.early[key] = need
        self._spread(node, need if need is not None else self._reached.get(key), repeated)

    def _spread(self, unit: PrimExpr, need: PrimExpr | None, repeated: set[int]) -> None:
        """Note when the repeated nodes in ``unit``, which is needed where ``need`` holds, are used.

        Each is needed where ``need`` and the conditions on the way to it hold.
        """
        reached: dict[int, PrimExpr | None] = {id(unit): need}
        inside = post_order_of(
            unit, lambda node: [] if node is not unit and id(node) in repeated else _values_of(node)
        )
        for node in reversed(inside):
            here = reached[id(node)]
            if node is not unit and id(node) in repeated:
                self._join(self._reached, node, here)
                continue
            arms = {id(arm): holds for arm, holds in arms_of(node)}
            for part in _without_arms(node):
                self._join(reached, part, here)
            for arm, holds in arms_of(node) if arms else ():
                self._join(reached, arm, self._under(here, _condition_of(node), holds))

    def _under(self, here: PrimExpr | None, condition: PrimExpr, holds: bool) -> PrimExpr | None:
        """When an arm is needed, of a node that is needed ``here``; None where it is not known."""
        if here is None or condition.dtype.lanes != 1 or id(condition) in self._open:
            return None
        flag = condition if holds else e.Not(condition)
        return flag if here is _TRUE else e.And(here, flag)

    @staticmethod
    def _join(reached: dict[int, PrimExpr | None], node: PrimExpr, way: PrimExpr | None) -> None:
        """Note that a node is also needed where ``way`` holds; None: that is not known early."""
        if id(node) not in reached:
            reached[id(node)] = way
            return
        before = reached[id(node)]
        if before is _TRUE or way is _TRUE:
            reached[id(node)] = _TRUE
        elif before is None or way is None:
            reached[id(node)] = None
        elif before is not way:
            reached[id(node)] = e.Or(before, way)


def _with_any(order: list[PrimExpr], chosen: set[int]) -> set[int]:
    """The nodes that are one of those chosen, or contain one."""
    holding: set[int] = set()
    for node in order:
        if id(node) in chosen or any(id(part) in holding for part in _values_of(node)):
            holding.add(id(node))
    return holding


_BRANCHES: Final = (e.Select, e.And, e.Or, e.Call)


class _Rename(Mutator):
    """Puts variables in the places of nodes."""

    def __init__(self) -> None:
        self.names: dict[int, e.Var] = {}

    def visit_PrimExpr(self, node: PrimExpr) -> PrimExpr:
        name = self.names.get(id(node))
        return self.visit_default(node) if name is None else name

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        return buffer


def shared(root: PrimExpr, faults: Faults) -> PrimExpr:
    """The expression with variables for the values that several branches use."""
    if not contains(root, _BRANCHES) or not any(map(arms_of, collect(root, _BRANCHES))):
        return root
    uses = Uses(root)
    if not uses.repeated or rebound(root):
        return root
    calls = collect(root, e.Call)
    if any(effect_of(call) >= CallEffectKind.UpdateState for call in calls):
        return root  # what is loaded before a call with an effect may differ from after it
    needs = _Needs(uses, faults)
    rename, lets = _Rename(), list(needs.flags)
    for node in uses.repeated:
        need = needs.early.get(id(node))
        if need is None or node is root:
            continue
        var = e.Var("shared", node.dtype)
        value = rename.visit(node)
        lets.append((var, value if need is _TRUE else _if_needed(need, value)))
        rename.names[id(node)] = var
    body = rename.visit(root)
    for var, value in reversed(lets):
        body = e.Let(var, value, body)
    return body


def _if_needed(need: PrimExpr, value: PrimExpr) -> PrimExpr:
    return op.if_then_else(need, value, op.const(0, value.dtype))


class _ShareValues(StatementFacts):
    def __init__(self, ranges: Ranges, bounds: Bounds, buffers: list[Buffer], checks: bool) -> None:
        super().__init__(ranges, bounds)
        self.checks = checks
        self.known = {id(buffer): buffer for buffer in buffers}

    def is_proved(self, load: BufferLoad) -> bool:
        is_tested = self.checks and id(load.buffer) in self.known
        return is_tested and is_within(self.bounds, load.indices, load.buffer.shape)

    def visit_PrimExpr(self, expr: PrimExpr) -> PrimExpr:
        return shared(expr, Faults(self.ranges, self.is_proved, {}))


def share_values(func: PrimFunc, checks: bool = True) -> PrimFunc:
    """The function with values that branches share in variables (see the module's docstring)."""
    if not any(map(arms_of, collect(func.body, _BRANCHES))):
        return func
    buffers = [stmt.buffer for stmt in collect(func.body, DeclBuffer)]
    buffers += func.buffer_map.values()
    return func.with_(body=_ShareValues(*facts_of(func), buffers, checks).visit(func.body))


ShareValues = define_pass("ShareValues", share_values)
