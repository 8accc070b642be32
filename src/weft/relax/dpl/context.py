"""PatternContext: several patterns that are matched together over one dataflow block."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from weft.ir.expr import RelaxExpr
from weft.relax.dpl.block_matcher import match_bindings
from weft.relax.dpl.edge import OPEN, Edge, SameShapeConstraint
from weft.relax.dpl.matcher import Pattern
from weft.relax.expr import DataflowBlock, Expr, Var
from weft.support.errors import IRTypeError, IRValueError


class PatternContext:
    """Collects the edges of the patterns that are built inside of ``with PatternContext():``.

    ``incremental=True`` starts with the edges of the surrounding context.
    """

    def __init__(self, incremental: bool = False) -> None:
        self.edges: list[Edge] = []
        self.same_shapes: list[SameShapeConstraint] = []
        if incremental:
            outer = PatternContext.current()
            if outer is None:
                raise IRValueError(
                    "PatternContext(incremental=True): expected a surrounding PatternContext, "
                    "found none; enter one, or leave incremental out"
                )
            self.edges += outer.edges
            self.same_shapes += outer.same_shapes

    def __enter__(self) -> Self:
        OPEN.push(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        OPEN.pop()

    @staticmethod
    def current() -> PatternContext | None:
        """The innermost open context of this thread."""
        innermost = OPEN.innermost
        return innermost if isinstance(innermost, PatternContext) else None

    def add_constraint(self, constraint: Edge | SameShapeConstraint) -> None:
        """Add an Edge or a SameShapeConstraint; ``used_by`` and the like call this."""
        if isinstance(constraint, Edge):
            self.edges.append(constraint)
        elif isinstance(constraint, SameShapeConstraint):
            self.same_shapes.append(constraint)
        else:
            raise IRTypeError(f"add_constraint: expected an Edge, got {constraint!r:.80}")

    def match_dfb(self, dfb: DataflowBlock) -> dict[Pattern, RelaxExpr] | None:
        """Match the patterns over a dataflow block.

        Returns the variable of each pattern that takes part in an edge (for an argument that
        stands inline, as constants and shapes do, the expression itself); None if no assignment
        of all of them exists. Different patterns get different variables.
        """
        values: dict[Var, Expr] = {binding.var: binding.value for binding in dfb.bindings}
        return match_bindings(self.edges, self.same_shapes, values)
