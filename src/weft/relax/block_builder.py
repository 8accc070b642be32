"""BlockBuilder: builds graph functions binding by binding, and the module around them.

::

    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.nn.relu(x))
            gv = bb.emit_output(lv)
        bb.emit_func_output(gv)
    mod = bb.get()

Everything emitted is brought into normal form (weft.relax.builder.normalize). Names, the sharing
of equal PrimFuncs and the order of functions are TVM 0.20's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar, cast

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.node import Array
from weft.relax.builder.function_checks import Params, check_bound, checked_params
from weft.relax.builder.normalize import Normalizer, collect_symbols, is_leaf
from weft.relax.builder.te_builder import TeBuilder
from weft.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    MatchCast,
    RelaxLike,
    SeqExpr,
    Var,
    VarBinding,
    as_relax_expr,
)
from weft.relax.ir.lattice import defining_vars
from weft.relax.ir.substitution import replace
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.support.errors import IRValueError
from weft.support.recursion import deep_recursion
from weft.support.scopes import Scopes
from weft.tir.expr import Var as TirVar

E = TypeVar("E", bound=RelaxExpr)
Symbols = dict[TirVar, PrimExpr]
"""Symbolic variables that are in scope, each mapped to itself."""


class _Frame:
    """A block under construction."""

    def __init__(self, is_dataflow: bool) -> None:
        self.is_dataflow = is_dataflow
        self.bindings: list[Binding] = []


class FunctionScope:
    """The function that ``with bb.function(...)`` builds."""

    def __init__(
        self,
        builder: BlockBuilder,
        name: str,
        params: Array[Var] | None,
        attrs: Mapping[str, object],
        is_pure: bool,
    ) -> None:
        self.builder, self.name, self.params = builder, name, params
        self.attrs, self.is_pure = dict(attrs), is_pure
        self.blocks: list[BindingBlock] = []
        self.has_output = False

    def __enter__(self) -> FunctionScope:
        self.builder._enter_function(self)
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.builder._exit_function(failed=exc_type is not None)


class DataflowScope:
    """The dataflow block that ``with bb.dataflow()`` builds."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder

    def __enter__(self) -> None:
        if not self.builder.in_block():
            raise IRValueError(
                "dataflow: no function is open; use it inside of `with bb.function(...)`, before "
                "emit_func_output"
            )
        if self.builder.current_block_is_dataflow():
            raise IRValueError("dataflow: a dataflow block is open already; they do not nest")
        self.builder._close_block()
        self.builder.begin_dataflow_block()

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        if not self.builder.in_block():
            if exc_type is not None:
                return
            raise IRValueError(
                "dataflow: the function ended inside of the block; call emit_func_output after "
                "`with bb.dataflow()`, on what emit_output returned"
            )
        self.builder._close_block()
        self.builder.begin_binding_block()


class SymbolScope:
    """A scope in which symbolic variables are defined, for tests of ``normalize``."""

    def __init__(self, builder: BlockBuilder, def_vars: Sequence[TirVar]) -> None:
        self.builder = builder
        self.params = [Var(f"v{i}", _shape_of(var)) for i, var in enumerate(def_vars)]

    def __enter__(self) -> None:
        self.builder.begin_scope(self.params)
        self.builder.begin_dataflow_block()

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.builder.end_block()
        self.builder.end_scope()


def _shape_of(var: TirVar) -> StructInfo:
    return TensorStructInfo([var], "float32")


class BlockBuilder(TeBuilder):
    """Builds graph functions binding by binding, and the module that they live in.

    Args:
        mod: the module to start from; it is copied. An empty one if left out.

    >>> from weft import relax
    >>> x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    >>> bb = relax.BlockBuilder()
    >>> with bb.function("main", [x]):
    ...     with bb.dataflow():
    ...         hidden = bb.emit(relax.op.exp(x))
    ...         result = bb.emit_output(relax.op.add(hidden, x))
    ...     main = bb.emit_func_output(result)
    >>> bb.get()["main"].ret_struct_info
    R.Tensor((4,), dtype="float32")
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        super().__init__(mod)
        self._frames: list[_Frame] = []
        self._scopes: list[Symbols] = []
        self._values: dict[Var, Expr] = {}
        self._func: FunctionScope | None = None
        self._normalizer = Normalizer(self)

    def __repr__(self) -> str:
        names = [gvar.name_hint for gvar in self._mod.functions][:8]
        building = "" if self._func is None else f", building={self._func.name}"
        return f"BlockBuilder(functions=[{', '.join(names)}]{building})"

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder whose function is open in this thread, or None."""
        return _ACTIVE.innermost

    # Functions and scopes

    def function(
        self,
        name: str,
        params: Params | None = None,
        attrs: Mapping[str, object] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> FunctionScope:
        """Open a function: ``with bb.function("main", [x]):``, ended by ``emit_func_output``.

        Args:
            name: its name in the module; a number is added where the name is taken.
            params: its parameters; they may be given to ``emit_func_output`` instead.
            attrs: attributes of the function.
            pure: it has no effect but its result.
            private: without ``global_symbol``: nothing outside of the module calls it.

        Raises:
            IRTypeError: a parameter is no ``relax.Var``.
        """
        attributes = dict(attrs or {})
        if not private:
            attributes["global_symbol"] = name
        checked = None if params is None else checked_params(params)
        return FunctionScope(self, name, checked, attributes, pure)

    def testing_scope(self, def_vars: Sequence[TirVar]) -> SymbolScope:
        """Open a scope in which the given symbolic variables are defined, for tests."""
        return SymbolScope(self, def_vars)

    def _enter_function(self, scope: FunctionScope) -> None:
        if self._func is not None:
            raise IRValueError(
                f"function {scope.name!r} inside of {self._func.name!r}: the block builder builds "
                "one function at a time"
            )
        self._func = scope
        _ACTIVE.push(self)
        self.begin_scope(scope.params)
        self.begin_binding_block()

    def _exit_function(self, failed: bool) -> None:
        scope, self._func = self._func, None
        if _ACTIVE.innermost is self:
            _ACTIVE.pop()
        if failed:
            self._frames.clear()
            self._scopes.clear()
        elif scope is not None and not scope.has_output:
            raise IRValueError(f"function {scope.name!r}: emit_func_output was not called")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Set the open function aside while another one is built, such as the body of a loop.

        ::

            with bb.aside(), bb.function("step", [x], private=True):
                gvar = bb.emit_func_output(bb.emit(relax.op.exp(x)))
        """
        saved = self._func, self._frames, self._scopes
        self._func, self._frames, self._scopes = None, [], []
        try:
            yield
        finally:
            self._func, self._frames, self._scopes = saved

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Open a scope in which the symbolic variables of ``params`` are defined."""
        self._scopes.append(collect_symbols(params))

    def end_scope(self) -> None:
        """Close the innermost scope."""
        if not self._scopes:
            raise IRValueError("end_scope: no scope is open; call begin_scope first")
        self._scopes.pop()

    def known_symbols(self, skip: int = 0) -> Symbols:
        """The symbolic variables of the open scopes, except for the ``skip`` innermost ones."""
        known: Symbols = {}
        for scope in self._scopes[: len(self._scopes) - skip]:
            known.update(scope)
        return known

    # Blocks

    def dataflow(self) -> DataflowScope:
        """Open a dataflow block (``with bb.dataflow():``): bindings without side effects.

        Passes may reorder them. Only what ``emit_output`` binds can be used after the block.
        """
        return DataflowScope(self)

    def begin_dataflow_block(self) -> None:
        """Open a dataflow block, which ``end_block`` closes."""
        self._frames.append(_Frame(True))

    def begin_binding_block(self) -> None:
        """Open a block of bindings, which ``end_block`` closes."""
        self._frames.append(_Frame(False))

    def end_block(self) -> BindingBlock:
        """Close the innermost block and return it."""
        if not self._frames:
            raise IRValueError("end_block: no block is open; use `with bb.function(...)` first")
        frame = self._frames.pop()
        kind = DataflowBlock if frame.is_dataflow else BindingBlock
        return kind(frame.bindings)

    def in_block(self) -> bool:
        """Whether a block is open, so that ``emit`` has a place to bind in."""
        return bool(self._frames)

    def current_block_is_dataflow(self) -> bool:
        """Whether the innermost open block is a dataflow block."""
        return bool(self._frames) and self._frames[-1].is_dataflow

    def _close_block(self) -> None:
        block = self.end_block()
        if block.bindings and self._func is not None:
            self._func.blocks.append(block)

    # Emitting

    def emit(self, expr: RelaxLike, name_hint: str = "") -> Var:
        """Bind an expression to a new variable, and return the variable.

        Calls among the arguments are bound to variables of their own first (normal form).

        Args:
            expr: the expression, or a number, an array or a tuple, which is converted to one.
            name_hint: the variable's name; a number is added where it is taken.

        >>> from weft import relax
        >>> x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
        >>> bb = relax.BlockBuilder()
        >>> with bb.function("main", [x]):
        ...     y = bb.emit(relax.op.add(relax.op.exp(x), x), name_hint="y")
        ...     main = bb.emit_func_output(y)
        >>> [binding.var.name_hint for binding in bb.get()["main"].body.blocks[0].bindings]
        ['gv', 'y']
        """
        value = self.normalize(as_relax_expr(expr))
        value = self.inline_sequence(value)
        is_dataflow = self._frame().is_dataflow
        hint = name_hint or ("lv" if is_dataflow else "gv")
        kind = DataflowVar if is_dataflow else Var
        var = kind(self._names.fresh(hint), value.struct_info)
        return self.emit_normalized(VarBinding(var, value))

    def inline_sequence(self, value: RelaxExpr) -> RelaxExpr:
        """Emit the bindings of a sequence into the open block, and return the sequence's result.

        Outside of a dataflow block, the dataflow variables of the sequence become plain ones.
        """
        while isinstance(value, SeqExpr):
            if not self._frame().is_dataflow:
                local = [binding.var for block in value.blocks for binding in block.bindings]
                plain: dict[Var, Var] = {
                    var: Var(var.name_hint, var.struct_info)
                    for var in local
                    if isinstance(var, DataflowVar)
                }
                value = replace(value, plain)
            for block in value.blocks:
                for binding in block.bindings:
                    self.emit_normalized(binding)
            value = value.body
        return value

    def _frame(self) -> _Frame:
        if not self._frames:
            raise IRValueError("emit: no block is open; use `with bb.function(...)` first")
        return self._frames[-1]

    def emit_normalized(self, binding: Binding) -> Var:
        """Add a binding that is in normal form already, and return its variable."""
        self._frame().bindings.append(binding)
        var: Var = binding.var
        if isinstance(binding, VarBinding):
            self._values[var] = binding.value
        elif isinstance(binding, MatchCast):
            self._values[var] = binding.value
            if self._scopes:
                for symbol in defining_vars(binding.struct_info):
                    self._scopes[-1].setdefault(symbol, symbol)
        return var

    def match_cast(self, value: RelaxLike, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Check a value against a struct info at run time, and bind the symbols in it that are new.

        Args:
            value: the value.
            struct_info: what it has to be, such as ``relax.TensorStructInfo((n,), "float32")``.
            name_hint: the name of the new variable.
        """
        operand = self.normalize(as_relax_expr(value))
        if not is_leaf(operand):
            operand = self.emit(operand)
        is_dataflow = self._frame().is_dataflow
        kind = DataflowVar if is_dataflow else Var
        hint = name_hint or ("lv" if is_dataflow else "gv")
        var = kind(self._names.fresh(hint), struct_info)
        return self.emit_normalized(MatchCast(var, operand, struct_info))

    def emit_match_cast(self, value: RelaxLike, struct_info: StructInfo) -> Var:
        """``match_cast`` under TVM's other name."""
        return self.match_cast(value, struct_info)

    def emit_output(self, output: RelaxLike, name_hint: str = "") -> Var:
        """Bind an expression to a variable that can be used after the open dataflow block, too.

        Args:
            output: the expression.
            name_hint: the variable's name; a number is added where it is taken.
        """
        if not self._frame().is_dataflow:
            raise IRValueError("emit_output: only a dataflow block has outputs; use emit")
        value = self.inline_sequence(self.normalize(as_relax_expr(output)))
        var = Var(self._names.fresh(name_hint or "gv"), value.struct_info)
        return self.emit_normalized(VarBinding(var, value))

    def emit_func_output(self, output: RelaxLike, params: Params | None = None) -> GlobalVar:
        """End the open function with its result, add it to the module, and return its GlobalVar.

        Args:
            output: the result: an expression, or a list or tuple of them. A variable of a dataflow
                block becomes an output of its block.
            params: the parameters, if ``function`` was not given them.
        """
        func, name = self._finished(output, params)
        return self.add_func(func, name)

    def emit_func_body_of(self, gvar: GlobalVar, output: RelaxLike) -> None:
        """End the open function with its result, and replace the function of ``gvar`` by it.

        This is how a function that calls itself is built: first add a function with the same
        signature, then call its ``gvar`` in the body of the real one.
        """
        func, _ = self._finished(output, None)
        self.update_func(gvar, func)

    def _finished(self, output: RelaxLike, params: Params | None) -> tuple[Function, str]:
        """The open function with its result, and its name."""
        scope = self._func
        if scope is None:
            raise IRValueError("emit_func_output: no function is open; use `with bb.function(...)`")
        if scope.has_output:
            raise IRValueError(f"function {scope.name!r}: emit_func_output was called twice")
        scope_params = self._set_params(scope, params)
        result = as_relax_expr(output)
        self._close_block()
        result = self._make_outputs(scope, result)
        body = self.normalize(SeqExpr(scope.blocks, result))
        func = Function(
            scope_params,
            body,
            self._normalizer.visible(body.struct_info, scope_params),
            scope.is_pure,
            scope.attrs,
        )
        check_bound(func, scope.name)
        self.end_scope()
        scope.has_output = True
        return func, scope.name

    def _set_params(self, scope: FunctionScope, params: Params | None) -> Array[Var]:
        """Store the parameters in the scope of the open function, and return them."""
        if params is not None:
            if scope.params is not None:
                raise IRValueError(
                    f"function {scope.name!r}: parameters were given to bb.function already"
                )
            scope.params = checked_params(params)
        elif scope.params is None:
            raise IRValueError(
                f"function {scope.name!r}: parameters must be given to bb.function or to "
                "emit_func_output"
            )
        self._scopes[-1].update(collect_symbols(scope.params))
        return scope.params

    def _make_outputs(self, scope: FunctionScope, result: RelaxExpr) -> RelaxExpr:
        """Turn dataflow variables in the result into outputs of their blocks."""
        mapping: dict[Var, Var] = {
            var: Var(var.name_hint, var.struct_info) for var in collect(result, DataflowVar)
        }
        if not mapping:
            return result
        scope.blocks = [replace(block, mapping) for block in scope.blocks]
        for block in scope.blocks:
            for binding in block.bindings:
                if isinstance(binding, VarBinding):
                    self._values[binding.var] = binding.value
        return replace(result, mapping)

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value that this builder bound a variable to, or None."""
        return self._values.get(var)

    @deep_recursion
    def normalize(self, expr: E) -> E:
        """The expression in normal form, with struct info; binds nested calls in the open block."""
        return cast(E, self._normalizer.visit(expr))  # the normalizer keeps an expression's class


_ACTIVE: Final[Scopes[BlockBuilder]] = Scopes("block_builders")
"""The builders whose function scope is open."""
