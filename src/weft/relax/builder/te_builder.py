"""TeBuilder: the part of a block builder that turns tensor expressions into PrimFuncs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence

from weft.ir.expr import GlobalVar
from weft.ir.node import expect
from weft.relax.builder.module_builder import ModuleBuilder
from weft.relax.builder.te_call import TeCall, make_te_call
from weft.relax.expr import Call, RelaxLike, Var
from weft.relax.op.base import call_tir, call_tir_inplace, call_tir_with_grad
from weft.support.errors import wrong_type

TeFunction = Callable[..., object]
"""A function of ``te.Tensor`` arguments; ``make_te_call`` checks that it returns tensors."""


class TeBuilder(ModuleBuilder):
    """Adds PrimFuncs made of tensor expressions to the module, and calls them."""

    @abstractmethod
    def emit(self, expr: RelaxLike, name_hint: str = "") -> Var:
        """Bind a value to a new variable."""

    def call_te(self, te_func: TeFunction, *args: object, **kwargs: object) -> Call:
        """Make a TensorIR function from a function on tensor expressions, and return a call of it.

        Args:
            te_func: takes tensors (``te.Tensor``) and other arguments, and returns a tensor or
                several.
            args: its arguments; graph values among them, also in lists, become inputs of the call.
            kwargs: its keyword arguments. ``primfunc_name_hint`` names the TensorIR function
                (``te_func``'s own name if left out), ``primfunc_attrs`` are its attributes.

        >>> from weft import relax, topi
        >>> x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
        >>> bb = relax.BlockBuilder()
        >>> with bb.function("main", [x]):
        ...     call = bb.call_te(topi.sum, x, axis=1)
        ...     main = bb.emit_func_output(bb.emit(call))
        >>> bb.get()["main"].ret_struct_info
        R.Tensor((4,), dtype="float32")
        """
        if not callable(te_func):
            raise wrong_type("emit_te: expected a function on te tensors", te_func)
        gvar, te_call = self._add_te(te_func, args, kwargs)
        return call_tir(gvar, te_call.args, te_call.out_sinfo, te_call.tir_vars)

    def call_te_with_grad(
        self,
        te_func: TeFunction,
        *args: object,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> Call:
        """As ``call_te``, with the name of the registered TE function that computes the gradient.

        Args:
            te_func: takes tensors (``te.Tensor``) and other arguments, and returns a tensor or
                several.
            args: its arguments.
            te_grad_name: the name under which the gradient is registered.
            te_grad_kwargs: keyword arguments of the gradient.
            kwargs: its keyword arguments.
        """
        gvar, te_call = self._add_te(te_func, args, kwargs)
        return call_tir_with_grad(
            gvar, te_call.args, te_call.out_sinfo, te_grad_name, te_grad_kwargs, te_call.tir_vars
        )

    def call_te_inplace(
        self,
        te_func: TeFunction,
        inplace_indices: int | Sequence[int],
        *args: object,
        **kwargs: object,
    ) -> Call:
        """As ``call_te``, but results are written into inputs.

        Args:
            te_func: takes tensors (``te.Tensor``) and other arguments, and returns a tensor or
                several.
            inplace_indices: for each result, the index of the input that holds it; -1 for new
                memory.
            args: its arguments.
            kwargs: its keyword arguments.
        """
        gvar, te_call = self._add_te(te_func, args, kwargs)
        return call_tir_inplace(
            gvar, te_call.args, inplace_indices, te_call.out_sinfo, te_call.tir_vars
        )

    def _add_te(
        self, te_func: TeFunction, args: Sequence[object], kwargs: dict[str, object]
    ) -> tuple[GlobalVar, TeCall]:
        """The PrimFunc of a function on tensor expressions, in the module, and what to pass it."""
        name = kwargs.pop("primfunc_name_hint", None) or getattr(te_func, "__name__", "te_func")
        te_call = make_te_call(te_func, args, kwargs)
        return self.add_func(te_call.func, expect(name, str)), te_call

    def emit_te(self, func: TeFunction, *args: object, **kwargs: object) -> Var:
        """Make a TensorIR function from a function on tensor expressions, call it, and bind the
        result.

        Args:
            func: takes tensors (``te.Tensor``) and other arguments, and returns a tensor or
                several.
            args: its arguments; graph values among them, also in lists, become inputs of the call.
            kwargs: its keyword arguments. ``primfunc_name_hint`` names the TensorIR function
                (``func``'s own name if left out), ``name_hint`` the variable.

        Returns:
            The variable.

        >>> from weft import relax, te
        >>> def double(a):
        ...     return te.compute(a.shape, lambda *i: a(*i) * 2.0, name="double")
        >>> x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
        >>> bb = relax.BlockBuilder()
        >>> with bb.function("main", [x]):
        ...     y = bb.emit_te(double, x)
        ...     main = bb.emit_func_output(y)
        >>> sorted(var.name_hint for var in bb.get().get_global_vars())
        ['double', 'main']
        """
        hint = expect(kwargs.pop("name_hint", ""), str)
        return self.emit(self.call_te(func, *args, **kwargs), hint)
