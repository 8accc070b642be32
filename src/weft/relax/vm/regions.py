"""Runs of kernels in a function that is bytecode become functions of their own, which are native.

A function runs as bytecode where only the run tells the shape of a value: of rows that a loop scans
out, of a result whose rank a condition chooses. Most of its bindings still are kernels on tensors
whose shapes follow from symbols. Bytecode has an instruction for each allocation and each kernel;
of a run of kernels it calls one function::

    a = call_tir(f, (x,)); b = call_tir(g, (a, y)); rows = add_row(rows, b)
    b = main_region(x, y); rows = add_row(rows, b)
    main_region(x, y) = a = call_tir(f, (x,)); b = call_tir(g, (a, y)); b
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.lattice import symbolic_vars, tensor_dims
from weft.relax.ir.substitution import copy_with_new_vars, replace
from weft.relax.struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.vm.host_calls import is_checked_reshape
from weft.tir.expr import Var as TirVar

LEAST: Final = 2
"""Kernels from which on a run is worth a function."""

AddFunction = Callable[[str, Function], GlobalVar]
"""Puts a function into the module, under that name or a similar one."""


def outline_regions(name: str, func: Function, add: AddFunction) -> Function:
    """The function with its runs of kernels replaced by calls of new functions.

    Args:
        name: of the function.
        func: in normal form, its operators legalised.
        add: takes the new functions.
    """
    return func.with_(body=_Outline(name, func, add).sequence(func.body))


class _Outline:
    def __init__(self, name: str, func: Function, add: AddFunction) -> None:
        self.name, self.add = name, add
        self.users: dict[Var, set[int]] = {}
        """By variable, the bindings (by ``id``) whose values use it, and 0 for all else."""
        self._find_users(func.body)

    def _find_users(self, seq: SeqExpr) -> None:
        for block in seq.blocks:
            for binding in block.bindings:
                value = binding.value  # branches have their own bindings
                for var in collect(value.cond if isinstance(value, If) else value, Var):
                    self.users.setdefault(var, set()).add(id(binding))
        for var in collect(seq.body, Var):
            self.users.setdefault(var, set()).add(0)
        for inner in _inner(seq):
            self._find_users(inner)

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A body or a branch with its runs replaced."""
        blocks = [self._block(block) for block in seq.blocks]
        if all(new is old for new, old in zip(blocks, seq.blocks, strict=True)):
            return seq
        rebuilt = SeqExpr(blocks, seq.body, span=seq.span)
        rebuilt.struct_info = seq.struct_info
        return rebuilt

    def _block(self, block: BindingBlock) -> BindingBlock:
        bindings: list[Binding] = []
        run = _Run()
        for binding in block.bindings:
            if run.takes(binding):
                continue
            bindings += self._replaced(run)
            run = _Run()
            if not run.takes(binding):
                bindings.append(self._entered(binding))
        bindings += self._replaced(run)
        same = len(bindings) == len(block.bindings)
        if same and all(new is old for new, old in zip(bindings, block.bindings, strict=True)):
            return block
        return block.with_(bindings=bindings)

    def _entered(self, binding: Binding) -> Binding:
        """The binding; of a choice, its branches are rewritten."""
        if not isinstance(binding, VarBinding) or not isinstance(binding.value, If):
            return binding
        choice = binding.value
        branches = [self.sequence(branch) for branch in _branches(choice)]
        rebuilt = If(choice.cond, *branches, span=choice.span)
        rebuilt.struct_info = choice.struct_info
        return binding.with_(value=rebuilt)

    def _replaced(self, run: _Run) -> Sequence[Binding]:
        """The bindings of a run, or a call of a function that has them."""
        rest = run.cut()
        return [*self._called(run), *rest]

    def _called(self, run: _Run) -> Sequence[Binding]:
        inside = {id(binding) for binding in run.bindings}
        results = [
            binding.var for binding in run.bindings if self.users.get(binding.var, set()) - inside
        ]
        if run.kernels < LEAST or not results:
            return run.bindings
        function, args = _function(run.bindings, results)
        callee = self.add(f"{self.name}_region", function)
        value = Call(callee, args)
        value.struct_info = function.ret_struct_info
        if len(results) == 1:
            return [VarBinding(results[0], value)]
        whole = type(results[0])("region", function.ret_struct_info)
        bindings = [VarBinding(whole, value)]
        for index, var in enumerate(results):
            item = TupleGetItem(whole, index)
            item.struct_info = var.struct_info
            bindings.append(VarBinding(var, item))
        return bindings


class _Run:
    """Kernels that follow each other, on tensors of known shapes."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []
        self.kernels = 0
        self.own: set[Var] = set()
        """Tensors that the run allocates."""

    def takes(self, binding: Binding) -> bool:
        """Add a binding that belongs to the run; whether it does."""
        if not _has_known_shape(binding.var):
            return False
        source = _viewed(binding)
        if source is not None:
            if not self.kernels or not _has_known_shape(source):
                return False  # outside of a run it costs less than as one more result
            if source in self.own:
                self.own.add(binding.var)
            self.bindings.append(binding)
            return True
        return isinstance(binding, VarBinding) and self.takes_kernel(binding, binding.value)

    def takes_kernel(self, binding: VarBinding, value: Expr) -> bool:
        """The same of what is no view of another value."""
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return False
        if not all(_has_known_shape(var) for var in collect(value.args, Var)):
            return False
        if value.op.name == "relax.call_tir_inplace":
            places = [int(place) for place in value.attrs["inplace_indices"]]
            arguments = value.args[1]
            if not isinstance(arguments, Tuple) or any(
                place >= 0 and arguments.fields[place] not in self.own for place in places
            ):
                return False  # it writes to a tensor from outside
        elif value.op.name != "relax.call_tir" and not is_checked_reshape(value):
            return False
        self.kernels += 1
        self.own.add(binding.var)
        self.bindings.append(binding)
        return True

    def cut(self) -> list[Binding]:
        """Take the views behind the last kernel off, which no kernel of the run reads."""
        end = len(self.bindings)
        while end and _viewed(self.bindings[end - 1]) is not None:
            end -= 1
        self.bindings, rest = self.bindings[:end], self.bindings[end:]
        return rest


def _viewed(binding: Binding) -> Var | None:
    """The value whose memory that of a binding is: of a part, a reshape, a comparison of shapes.

    A comparison that defines symbols is none: what stands behind it needs them.
    """
    value = binding.value
    if isinstance(binding, MatchCast):
        old, new = symbolic_vars(value.struct_info), symbolic_vars(binding.struct_info)
        return value if isinstance(value, Var) and set(new) <= set(old) else None
    if isinstance(value, TupleGetItem):
        return value.tuple_value if isinstance(value.tuple_value, Var) else None
    is_reshape = isinstance(value, Call) and value.op is Op.get("relax.reshape")
    source = value.args[0] if is_reshape else None
    return source if isinstance(source, Var) else None


def _has_known_shape(var: Var) -> bool:
    """Whether a value is a tensor of known shape, or a tuple of those."""
    info = var.struct_info
    fields = info.fields if isinstance(info, TupleStructInfo) else [info]
    return all(
        isinstance(field, TensorStructInfo) and tensor_dims(field) is not None for field in fields
    )


def _function(bindings: Sequence[Binding], results: Sequence[Var]) -> tuple[Function, list[Expr]]:
    """A function that has the bindings and gives the results; what it is called with."""
    bound = {binding.var for binding in bindings}
    used = [var for binding in bindings for var in collect(binding.value, Var)]
    inputs = list(dict.fromkeys([var for var in used if var not in bound]))
    symbols = _symbols([*bindings, *inputs])
    args: list[Expr] = list(inputs)
    params = list(inputs)
    if symbols:
        args.append(ShapeExpr(symbols))
        params.append(Var("sizes", ShapeStructInfo(symbols)))
    infos = [var.struct_info for var in results]
    if len(results) == 1:
        body: Expr = results[0]
        info = infos[0]
    else:
        info = TupleStructInfo(infos)
        body = Tuple(list(results))
        body.struct_info = info
    whole = SeqExpr([BindingBlock(list(bindings))], body)
    whole.struct_info = info
    function = Function(params, whole, info, is_pure=True)
    fresh = {symbol: type(symbol)(symbol.name, symbol.dtype) for symbol in symbols}
    return copy_with_new_vars(replace(function, symbols=fresh)), args


def _symbols(items: Iterable[Binding | Var]) -> list[TirVar]:
    """The symbols of the shapes of variables, and those that values use."""
    symbols: dict[TirVar, None] = {}
    for item in items:
        var = item if isinstance(item, Var) else item.var
        symbols.update(dict.fromkeys(symbolic_vars(var.struct_info)))
        if not isinstance(item, Var):
            symbols.update(dict.fromkeys(symbolic_vars(item.value)))
    return list(symbols)


def _inner(seq: SeqExpr) -> list[SeqExpr]:
    """The branches of the choices in a body."""
    values = [
        binding.value
        for block in seq.blocks
        for binding in block.bindings
        if isinstance(binding, VarBinding)
    ]
    return [branch for value in values if isinstance(value, If) for branch in _branches(value)]


def _branches(choice: If) -> list[SeqExpr]:
    return [expect(branch, SeqExpr) for branch in (choice.true_branch, choice.false_branch)]
