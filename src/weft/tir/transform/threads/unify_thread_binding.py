"""UnifyThreadBinding gives all loops of a kernel that are bound to one tag one variable.

Before: ``for tx in thread_binding(32, "threadIdx.x")`` twice inside one ``blockIdx.x`` loop. After:
``for bx in ...: for tx in ...:`` around both bodies. All loops of one tag must have one extent.
"""

from __future__ import annotations

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, For, ForKind, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body
from weft.tir.transform.threads.thread_scope import Binding, binding_of


class _Unify(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.analyzer = Analyzer()
        self.values: dict[int, PrimExpr] = {}
        self.threads: dict[str, IterVar] = {}
        self.depth = 0

    def visit_Var(self, var: Var) -> PrimExpr:
        return self.values.get(id(var), var)

    def visit_For(self, loop: For) -> Stmt:
        binding = binding_of(loop)
        if binding is None:
            return self.visit_default(loop)
        body = self.unified(binding)
        if not loop.annotations:
            return body
        if isinstance(body, For):
            return body.with_(annotations=loop.annotations)
        dtype = loop.loop_var.dtype
        return For(
            Var("var", dtype),
            IntImm(dtype, 0),
            IntImm(dtype, 1),
            ForKind.SERIAL,
            body,
            None,
            loop.annotations,
        )

    def visit_AttrStmt(self, attr: AttrStmt) -> Stmt:
        binding = binding_of(attr)
        return self.visit_default(attr) if binding is None else self.unified(binding)

    def unified(self, binding: Binding) -> Stmt:
        """The body over the kernel's variable; the outermost one launches all threads."""
        low = IntImm(binding.extent.dtype, 0) if binding.low is None else self.visit(binding.low)
        dom = Range.from_min_extent(low, self.visit(binding.extent))
        launches = self.depth == 0
        counts = launches or binding.is_block
        if launches:
            self.threads = {}
        self.depth += counts
        known = self.threads.get(binding.tag)
        if known is None:
            var = Var(binding.tag, dom.extent.dtype)
            known = IterVar(dom, var, IterType.ThreadIndex, binding.tag)
            self.threads[binding.tag] = known
        self.check(known, dom)
        self.values[id(binding.var)] = op.cast(binding.var.dtype, known.var)
        body: Stmt = self.visit(binding.body)
        self.depth -= counts
        return self.launch(body) if launches else body

    def check(self, known: IterVar, dom: Range) -> None:
        assert known.dom is not None
        same = self.analyzer.can_prove_equal
        if not same(known.dom.min, dom.min) or not same(known.dom.extent, dom.extent):
            raise IRValueError(
                f"All loops that are bound to {known.thread_tag} should have the same extent; "
                f"there are two, with extent {known.dom.extent} and {dom.extent}. Split or fuse "
                "one so that both match"
            )

    def launch(self, body: Stmt) -> Stmt:
        for axis in reversed(list(self.threads.values())):
            assert axis.dom is not None
            thread = IterVar(None, Var("", axis.var.dtype), IterType.ThreadIndex, axis.thread_tag)
            body = For(
                axis.var, axis.dom.min, axis.dom.extent, ForKind.THREAD_BINDING, body, thread
            )
        return body


def unify_thread_binding(func: PrimFunc) -> PrimFunc:
    """The function with one variable for each thread tag in each kernel."""
    return rewrite_body(func, _Unify())


UnifyThreadBinding = define_pass("UnifyThreadBinding", unify_thread_binding)
