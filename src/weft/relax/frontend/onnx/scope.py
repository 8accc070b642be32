"""Names that are visible in a graph: its own, then those of the graph around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.relax.frontend.onnx.errors import OnnxModelError, OnnxNodeError
from weft.relax.frontend.onnx.protos import Attributes, NodeProto
from weft.relax.frontend.onnx.registry import plain_domain
from weft.relax.frontend.onnx.value import GraphValue


class Scope:
    """A graph under translation.

    Attributes:
        opsets: version by domain.
        attributes: of the call of the model function that the graph is the body of.
    """

    def __init__(
        self,
        opsets: Mapping[str, int],
        outer: Scope | None = None,
        attributes: Attributes | None = None,
    ) -> None:
        self.opsets, self.outer = dict(opsets), outer
        self.attributes = dict(attributes or {})
        self.names: dict[str, GraphValue | None] = {}

    def inner(self) -> Scope:
        """The scope of a sub-graph, which sees this one's names."""
        return Scope(self.opsets, self, self.attributes)

    def set(self, name: str, value: GraphValue | None) -> None:
        """Enter the value of a name; the empty one stands for an output that nobody uses."""
        if name:
            self.names[name] = value

    def set_outputs(self, node: NodeProto, values: Sequence[GraphValue | None]) -> None:
        """Enter what a node gives; OnnxNodeError if it gives less than is used."""
        if len(values) < len([name for name in node.output if name]):
            raise OnnxNodeError(
                f"{node.op_type} {node.name!r}: expected {len(node.output)} outputs, got "
                f"{len(values)} from its converter or branch"
            )
        for name, value in zip(node.output, values, strict=False):
            self.set(name, value)

    def get(self, name: str) -> GraphValue | None:
        """The value of a name, None for the empty one."""
        if not name:
            return None
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise OnnxModelError(
            f"the value {name!r} is used but nothing defines it: no input, no initializer, no node"
        )

    def opset(self, domain: str) -> int:
        """The version of a domain's operator set here (1 where the model does not say)."""
        return self.opsets.get(plain_domain(domain), 1)
