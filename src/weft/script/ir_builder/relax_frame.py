"""The frames of graph functions: functions, dataflow blocks, branches.

Each function has one BlockBuilder, which normalises each value and infers its struct info.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.relax.block_builder import BlockBuilder
from weft.relax.builder.normalize import is_leaf, merged_blocks
from weft.relax.expr import (
    BindingBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    RelaxLike,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
    as_relax_expr,
)
from weft.relax.ir.lattice import BaseCheckResult, struct_info_base_check
from weft.relax.ir.substitution import replace
from weft.relax.struct_info import ObjectStructInfo, StructInfo, TupleStructInfo
from weft.script.ir_builder.base import NAMERS, IRBuilder, IRBuilderFrame
from weft.support.errors import IRTypeError, IRValueError
from weft.support.span import Span


def name_var(var: Var, name: str) -> None:
    """Name a variable that has no name yet."""
    if not var.name_hint:
        var.name_hint = name


NAMERS[Var] = name_var


class SeqFrame(IRBuilderFrame):
    """A frame that holds blocks of bindings."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[BindingBlock] = []
        self.bb: BlockBuilder = BlockBuilder()

    def _enter(self) -> Self:
        assert self.builder is not None
        for frame in reversed(self.builder.frames[:-1]):
            if isinstance(frame, FunctionFrame):
                self.bb = frame.bb
                break
        self.bb.begin_scope(None)
        self.bb.begin_binding_block()
        return self

    def close(self) -> list[BindingBlock]:
        """The blocks of the finished frame."""
        self.blocks.append(self.bb.end_block())
        self.bb.end_scope()
        return list(merged_blocks(self.blocks))


class FunctionFrame(SeqFrame):
    """A graph function; its name becomes ``global_symbol`` unless it is private or local."""

    def __init__(self, is_pure: bool = True, is_private: bool = False) -> None:
        super().__init__()
        self.is_pure, self.is_private = is_pure, is_private
        self.name: str | None = None
        self.params: list[Var] = []
        self.attrs: dict[str, object] = {}
        self.ret_struct_info: StructInfo | None = None
        self.output: RelaxExpr | None = None
        self.symbols: dict[str, PrimExpr] = {}
        """What a name in a text means as an extent: a variable, or a T.meta_var of the body."""
        self.is_local = False

    def _enter(self) -> Any:
        assert self.builder is not None
        for frame in reversed(self.builder.frames[:-1]):
            if isinstance(frame, FunctionFrame):
                self.symbols = dict(frame.symbols)
                self.is_local = True
                break
        else:
            self.bb = BlockBuilder(self.builder.emitted)
            for name in self.builder.reserved:
                self.bb.get_unique_name(name)
        return super()._enter()

    def add_param(self, name: str, info: StructInfo) -> Var:
        """A parameter; the symbols of its struct info are defined from here on."""
        var = Var(name, info)
        self.params.append(var)
        self.bb.end_scope()
        self.bb.begin_scope(self.params)
        return var

    def _exit(self) -> None:
        if self.output is None:
            raise IRValueError(f"function {self.name or ''}: no value is returned")
        info = self.output.struct_info
        derived: StructInfo = ObjectStructInfo()
        if info is not None:
            derived = self.bb._normalizer.visible(info, self.params)
        blocks = self.close()
        assert self.builder is not None
        self.builder.emitted = self.bb.get()
        ret = self.ret_struct_info or derived
        if isinstance(ret, TupleStructInfo) and not ret.fields:
            if isinstance(derived, TupleStructInfo):  # `-> R.Tuple` only says that it is a tuple
                ret = derived
        if ret is not derived and not _compatible(ret, derived):
            raise IRTypeError(
                f"function {self.name}: declared to return {ret}, but returns {derived}"
            )
        attrs = dict(self.attrs)
        if not (self.is_private or self.is_local) and "global_symbol" not in attrs and self.name:
            attrs = {"global_symbol": self.name, **attrs}
        body = SeqExpr(blocks, self.output)
        func = Function(self.params, body, ret, self.is_pure, attrs, span=self.span)
        parent: IRBuilderFrame | None = self.builder.frames[-1] if self.builder.frames else None
        add_function = getattr(parent, "add_function", None)
        if add_function is not None:
            add_function(self.name or "main", func)
        elif isinstance(parent, SeqFrame | DataflowFrame):
            self.builder.local_function = func
        else:
            self.builder.finish(func)


def _compatible(declared: StructInfo, derived: StructInfo) -> bool:
    return struct_info_base_check(declared, derived) != BaseCheckResult.FAIL_L0


class DataflowFrame(IRBuilderFrame):
    """A dataflow block; only the variables given to ``output`` are visible after it."""

    def __init__(self) -> None:
        super().__init__()
        self.seq: SeqFrame | None = None
        self.outputs: list[Var] = []
        self.replaced: dict[Var, Var] = {}

    @property
    def output_vars(self) -> list[Var]:
        """The variables that are visible after the block, once it has ended."""
        return list(self.replaced.values())

    def _enter(self) -> Any:
        assert self.builder is not None
        frame = self.builder.frames[-2] if len(self.builder.frames) > 1 else None
        if not isinstance(frame, SeqFrame):
            raise IRValueError("R.dataflow belongs directly inside a function or a branch")
        self.seq = frame
        frame.blocks.append(frame.bb.end_block())
        frame.bb.begin_dataflow_block()
        return self

    def _exit(self) -> None:
        assert self.seq is not None
        bb = self.seq.bb
        block = bb.end_block()
        self.replaced = {
            var: Var(var.name_hint, var.struct_info, span=var.span) for var in self.outputs
        }
        if self.replaced:
            block = replace(block, self.replaced)
            for binding in block.bindings:
                bb._values[binding.var] = binding.value
        self.seq.blocks.append(block)
        bb.begin_binding_block()


class IfFrame(IRBuilderFrame):
    """``if cond``; both branches end with a binding of the same name, the result."""

    def __init__(self, condition: RelaxLike) -> None:
        super().__init__()
        self.condition = as_relax_expr(condition)
        self.then_expr: SeqExpr | None = None
        self.else_expr: SeqExpr | None = None
        self.var_name: str | None = None
        self.var: Var | None = None

    def _enter(self) -> Any:
        find_function("R.If")
        return self

    def _exit(self) -> None:
        if self.then_expr is None or self.else_expr is None:
            raise IRValueError("a choice in a graph function needs both branches")
        choice = If(self.condition, self.then_expr, self.else_expr, span=self.span)
        self.var = emit(choice)
        IRBuilder.name(self.var_name or "gv", self.var)


class BranchFrame(SeqFrame):
    """One branch of the IfFrame around it."""

    branch: ClassVar[str]

    def _exit(self) -> None:
        frame = IRBuilder.current().last(IfFrame)
        if frame is None:
            raise IRValueError(f"R.{self.branch.title()} belongs inside R.If")
        if getattr(frame, f"{self.branch}_expr") is not None:
            raise IRValueError(f"R.If has two R.{self.branch.title()}")
        blocks = self.close()
        if not blocks or not blocks[-1].bindings:
            raise IRValueError("a branch must end with a binding: both branches give its value")
        last = blocks[-1].bindings[-1]
        if frame.var_name not in (None, last.var.name_hint):
            raise IRValueError(
                "both branches must end with a binding of the same variable, got "
                f"{frame.var_name!r} and {last.var.name_hint!r}"
            )
        frame.var_name = last.var.name_hint
        body: Expr = last.var
        if isinstance(last, VarBinding) and (is_leaf(last.value) or isinstance(last.value, Tuple)):
            body = last.value
            rest = type(blocks[-1])(list(blocks[-1].bindings)[:-1])
            blocks = [*blocks[:-1], *([rest] if rest.bindings else [])]
        setattr(frame, f"{self.branch}_expr", SeqExpr(blocks, body))


class ThenFrame(BranchFrame):
    """The branch for a condition that holds."""

    branch = "then"


class ElseFrame(BranchFrame):
    """The branch for a condition that does not hold."""

    branch = "else"


RelaxFrame = IRBuilderFrame
SeqExprFrame = SeqFrame
BlockFrame = DataflowFrame


def find_function(what: str) -> FunctionFrame:
    """The function being built; ``what`` needs it."""
    frame = IRBuilder.current().find(FunctionFrame)
    if frame is None:
        raise IRValueError(f"{what} belongs inside an R.function")
    return frame


def emit(value: RelaxLike, annotate_struct_info: StructInfo | None = None) -> Var:
    """Bind a value to a new variable, which takes the name it is assigned to."""
    bb = find_function("R.emit").bb
    expr = bb.normalize(as_relax_expr(value))
    info = expr.struct_info
    if annotate_struct_info is not None:
        if info is not None and not _compatible(annotate_struct_info, info):
            raise IRTypeError(
                f"the annotation {annotate_struct_info} does not fit the value's {info}"
            )
        info = annotate_struct_info
    kind = DataflowVar if bb.current_block_is_dataflow() else Var
    return bb.emit_normalized(VarBinding(kind("", info), expr, span=_span()))


def emit_match_cast(value: RelaxLike, struct_info: StructInfo) -> Var:
    """Bind a value to a new variable after a check against a struct info (``R.match_cast``)."""
    bb = find_function("R.emit_match_cast").bb
    expr = bb.normalize(as_relax_expr(value))
    if not is_leaf(expr):
        expr = bb.emit(expr)
    kind = DataflowVar if bb.current_block_is_dataflow() else Var
    return bb.emit_normalized(MatchCast(kind("", struct_info), expr, struct_info, span=_span()))


def emit_var_binding(binding: VarBinding) -> Var:
    """Add a binding to the function as it is."""
    return find_function("R.emit_var_binding").bb.emit_normalized(binding)


def _span() -> Span | None:
    return IRBuilder.current().span


def func_ret_value(value: RelaxLike) -> None:
    """State the value that the function returns; ``return`` in a script."""
    frame = find_function("R.func_ret_value")
    if IRBuilder.current().frames[-1] is not frame:
        raise IRValueError("return must stand at the end of the function, not inside of a block")
    if frame.output is not None:
        raise IRValueError(f"function {frame.name or ''} returns twice")
    expr = frame.bb.normalize(as_relax_expr(value))
    plain = is_leaf(expr) or isinstance(expr, Tuple)
    frame.output = expr if plain else frame.bb.emit(expr, "gv")
