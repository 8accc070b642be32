"""A schedule without its primitives: the program, random variables, a trace, random numbers.

Primitives work on a ``Session``; ``Schedule`` is a session with the table of primitives.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, Self

from weft.arith.analyzer import Analyzer
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, as_prim_expr
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.support.errors import IRIndexError, IRKeyError, IRTypeError, IRValueError
from weft.support.missing import MissingNameError
from weft.tir.analysis.axis_domains import check_axis_domains
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.schedule.errors import ExpiredReferenceError, ScheduleFailure
from weft.tir.schedule.instruction import Call, Instruction
from weft.tir.schedule.random_variable import BlockRV, ExprRV, LoopRV, RandomVariable
from weft.tir.schedule.state import ScheduleDebugMask, ScheduleState
from weft.tir.schedule.trace import Trace
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import Block, For

RENDER_LEVELS: Final = ("detail", "fast", "none")
SEED_MODULUS: Final = 2147483647
SEED_FACTOR: Final = 48271
FORK_FACTOR: Final = 1999999973


class Session(ABC):
    """A program that primitives rewrite, and the methods that they share."""

    def __getattr__(self, name: str) -> NoReturn:
        """Raise the error for a method that is not there: it names the nearest."""
        known = [item for item in dir(type(self)) if not item.startswith("_")]
        raise MissingNameError(f"a schedule has no {name}", name, lambda: known, "sch.")

    def __repr__(self) -> str:
        names = ", ".join([var.name_hint for var in self.state.roots])
        count = len(self.trace.insts) if self.trace is not None else 0
        steps = "1 step" if count == 1 else f"{count} steps"
        return f"Schedule(functions=[{names}], {steps}); sch.show() prints the program"

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        if error_render_level not in RENDER_LEVELS:
            raise IRValueError(
                f"error_render_level: expected one of {', '.join(RENDER_LEVELS)}, got "
                f"{error_render_level!r}"
            )
        if enable_check is True and isinstance(mod, (PrimFunc, IRModule)):
            check_axis_domains(mod)
        self.state = ScheduleState(mod, debug_mask=debug_mask, enable_check=enable_check)
        self.error_render_level = error_render_level
        self.func_working_on: GlobalVar | None = _only_function(self.state)
        self.trace: Trace | None = Trace()
        self._symbols: dict[object, StmtSRef | int] = {}
        self._call: Call | None = None
        self._seed = 1
        self.seed(-1 if seed is None else _checked_seed(seed))

    @classmethod
    def _create_non_traced(cls, mod: PrimFunc | IRModule, **options: Any) -> Self:
        """A schedule that records no trace."""
        schedule = cls(mod, **options)
        schedule.trace = None
        return schedule

    # ---- the program

    @property
    def mod(self) -> IRModule:
        """The module as scheduled so far."""
        return self.state.mod

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Print the module and the trace, coloured where the output is a terminal or a notebook."""
        self.mod.show(*args, **kwargs)
        if self.trace is not None:
            self.trace.show(*args[:1], **{k: v for k, v in kwargs.items() if k == "style"})

    def work_on(self, func_name: str) -> None:
        """Choose the function in which ``get_block`` looks when it is given no function's name.

        Args:
            func_name: the name of a PrimFunc of the module.

        Raises:
            IRKeyError: the module has no such PrimFunc.
        """
        self.func_working_on = self._function_named(func_name)

    def copy(self) -> Self:
        """Return a schedule of the same state that can be changed by itself.

        Every BlockRV, LoopRV and number of this schedule is valid in the copy.

        >>> from weft import te, tir
        >>> A = te.placeholder((8, 32), name="A")
        >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
        >>> sch = tir.Schedule(te.create_prim_func([A, B]))
        >>> i, j = sch.get_loops("B")
        >>> other = sch.copy()
        >>> outer, inner = other.split(j, factors=[None, 8])
        >>> len(other.get_loops("B")), len(sch.get_loops("B"))
        (3, 2)
        """
        schedule = object.__new__(type(self))
        schedule.state, pairs = self.state.copy()
        schedule.error_render_level = self.error_render_level
        schedule.func_working_on = self.func_working_on
        trace = self.trace
        schedule.trace = None if trace is None else Trace(trace.insts, trace.decisions)
        schedule._call = None
        schedule._seed = self.fork_seed()
        schedule._symbols = {
            rv: pairs.get(value, value) if isinstance(value, StmtSRef) else value
            for rv, value in self._symbols.items()
        }
        return schedule

    # ---- random variables

    def get(self, rand_var_or_sref: ExprRV | RandomVariable | StmtSRef) -> Any:
        """Return what a random variable stands for: a Block, a For loop or a number.

        Args:
            rand_var_or_sref: a BlockRV or a block's name, a LoopRV, a sampled number, an expression
                of such, or a StmtSRef.

        Raises:
            IRIndexError: the variable belongs to another schedule.
            ExpiredReferenceError: its block or loop is gone; the message says by which call.

        >>> from weft import te, tir
        >>> A = te.placeholder((8, 32), name="A")
        >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
        >>> sch = tir.Schedule(te.create_prim_func([A, B]))
        >>> sch.get(sch.get_loops("B")[1]).extent.value
        32
        """
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        if isinstance(rand_var_or_sref, str):
            rand_var_or_sref = self.get_block(rand_var_or_sref)
        if isinstance(rand_var_or_sref, RandomVariable):
            return self._sref(rand_var_or_sref).stmt
        value = self._evaluated(rand_var_or_sref)
        return value.value if isinstance(value, IntImm) else value

    def get_sref(self, rand_var_or_stmt: RandomVariable | Block | For) -> StmtSRef | None:
        """Return the reference behind a random variable, or to a loop or block node of the module.

        References stay valid through edits. Where the node is not in the module, there is none.
        """
        if isinstance(rand_var_or_stmt, RandomVariable):
            return self._sref(rand_var_or_stmt)
        return self.state.get_sref(rand_var_or_stmt)

    def remove_rv(self, rand_var: RandomVariable | ExprRV) -> None:
        """Forget a random variable: from here on the schedule does not know it.

        Raises:
            IRIndexError: the schedule does not know it now.
        """
        if rand_var not in self._symbols:
            raise IRIndexError(f"remove_rv: {rand_var!r} is no random variable of this schedule")
        del self._symbols[rand_var]

    def _sref(self, variable: RandomVariable | str) -> StmtSRef:
        """The live reference behind a random variable; an error that names who consumed it."""
        sref = self._symbols.get(variable)
        if not isinstance(sref, StmtSRef):
            raise IRIndexError(f"{variable!r} is no random variable of this schedule")
        if sref.stmt is None and sref.consumer is not None:
            kind = "block" if isinstance(variable, BlockRV) else "loop"
            name = variable.hint if isinstance(variable, RandomVariable) else variable
            raise ExpiredReferenceError(
                f"{self._call or 'sch.get'}: {kind} {name} no longer exists: "
                f"{sref.consumer} consumed it\n"
                f"hint: use what that call returned, or get the {kind} again"
            )
        return sref

    def _block_rv(self, block: StmtSRef | Block) -> BlockRV:
        sref = block if isinstance(block, StmtSRef) else self.state.sref_of(block)
        block_rv = BlockRV(getattr(sref.stmt, "name_hint", "_"))
        self._symbols[block_rv] = sref
        return block_rv

    def _loop_rv(self, loop: StmtSRef | For) -> LoopRV:
        sref = loop if isinstance(loop, StmtSRef) else self.state.sref_of(loop)
        loop_rv = LoopRV(sref.stmt.loop_var.name if isinstance(sref.stmt, For) else "_")
        self._symbols[loop_rv] = sref
        return loop_rv

    def _block_rvs(self, blocks: Iterable[StmtSRef | Block]) -> list[BlockRV]:
        return [self._block_rv(block) for block in blocks]

    def _loop_rvs(self, loops: Iterable[StmtSRef | For]) -> list[LoopRV]:
        return [self._loop_rv(loop) for loop in loops]

    def _number_rv(self, value: int) -> ExprRV:
        number_rv = Var("v", "int32")
        self._symbols[number_rv] = int(value)
        return number_rv

    def _evaluated(self, value: ExprRV | int) -> PrimExpr:
        """An expression with the sampled numbers in place of their variables."""
        expr = as_prim_expr(value)
        if isinstance(expr, IntImm):
            return expr
        known = {
            rv: IntImm(rv.dtype, number)
            for rv in collect(expr, Var)
            if isinstance(number := self._symbols.get(rv), int)
        }
        if isinstance(expr, Var):
            return known.get(expr, expr)
        if not known:
            return expr
        return Analyzer().simplify(substitute(expr, known))

    def _evaluated_all(self, values: Sequence[ExprRV | int | None]) -> list[PrimExpr | None]:
        return [None if value is None else self._evaluated(value) for value in values]

    @abstractmethod
    def get_block(self, name: str, func_name: str | None = None) -> BlockRV:
        """The block of a name: the primitive that every argument may name its block by."""

    def _block_named(self, block: BlockRV | str) -> BlockRV:
        return self.get_block(block) if isinstance(block, str) else block

    # ---- functions

    def _function_named(self, name: str) -> GlobalVar:
        for var in self.state.roots:
            if var.name_hint == name:
                return var
        names = ", ".join([var.name_hint for var in self.state.roots])
        raise IRKeyError(
            f"Schedule: there is no PrimFunc {name!r} in the module; there are {names}"
        )

    def _default_function(self) -> GlobalVar:
        if self.func_working_on is None:
            names = ", ".join([var.name_hint for var in self.state.roots]) or "none"
            raise IRValueError(
                "Schedule: it does not know which function to be working on: the module has "
                f"several ({names}) and none is called main; give func_name, or choose one with "
                "sch.work_on(name)"
            )
        return self.func_working_on

    # ---- calls

    @contextmanager
    def _calling(self, call: Call) -> Iterator[bool]:
        """Run a primitive: all or nothing. Yields whether it is called from outside."""
        if self._call is not None:
            yield False
            return
        self._call = call
        self.state.current_call = call
        try:
            with self.state.transaction():
                yield True
                checked = self.state.debug_mask & ScheduleDebugMask.VERIFY_CACHED_FLAGS
                if checked and self.state.is_edited:
                    self.state.verify_flags()
        except ScheduleFailure as error:
            error.level = self.error_render_level
            raise
        finally:
            self._call = None
            self.state.current_call = None

    def _record(self, call: Call, result: object) -> None:
        if self.trace is None:
            return
        outputs = [] if result is None else result if isinstance(result, list) else [result]
        inputs, attrs = call.kind.split_arguments(call.arguments)
        self.trace.append(Instruction(call.kind, inputs, attrs, list(outputs)), call.decision)

    # ---- randomness

    def seed(self, seed: int) -> None:
        """Set where the random numbers of sampling start.

        Args:
            seed: the same seed draws the same numbers; -1 takes one from the system.
        """
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise IRTypeError(f"seed: expected an int, got {type(seed).__name__} {seed!r}")
        self._seed = secrets.randbelow(SEED_MODULUS - 1) + 1 if seed == -1 else seed

    def fork_seed(self) -> int:
        """Return a seed for another schedule, different in each call."""
        return (self._next_random() * FORK_FACTOR) % SEED_MODULUS

    def _next_random(self) -> int:
        """The next number of the minimal standard generator (Park and Miller, CACM 1988)."""
        self._seed = (self._seed * SEED_FACTOR) % SEED_MODULUS
        return self._seed


def _only_function(state: ScheduleState) -> GlobalVar | None:
    names = list(state.roots)
    if len(names) == 1:
        return names[0]
    return next((var for var in names if var.name_hint == "main"), None)


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise IRTypeError(f"seed: expected an int or None, got {type(seed).__name__} {seed!r}")
    if not (1 <= seed <= SEED_MODULUS or seed == -1):
        raise IRValueError(f"seed: expected 1 to {SEED_MODULUS}, got {seed}")
    return seed
