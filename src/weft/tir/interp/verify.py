"""``VerifyResults`` checks after every pass that PrimFuncs compute the same as before.

An instrument for ``PassContext(instruments=[VerifyResults()])``. (``verify=True`` uses
``weft.relax.reference.verify``, which compares graphs, too.) Each PrimFunc runs in the reference
interpreter on random arguments before and after a pass; a VerifyError names the first pass that
changes a result, and the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.instrument import PassInstrument
from weft.ir.module import IRModule
from weft.ir.transform import PassContext, PassInfo
from weft.support import slots
from weft.support.errors import TVMError, VerifyError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.arguments import random_arguments
from weft.tir.interp.code_check import Native, check_code
from weft.tir.interp.limited import LimitedRunner
from weft.tir.interp.values import Value

COMPILED_TOLERANCE: Final = 1e-4
"""The allowed difference between results of compiled code, relative to the largest value."""

Results = dict[str, tuple[PrimFunc, list[Value] | None]]


class VerifyResults(PassInstrument):
    """Compares results before and after each pass.

    Args:
        seed: the seed of the random arguments.
        size: the value of every symbolic extent.
        rtol: the relative tolerance for floats; integers must be equal.

    A function is not compared if it raises an error on the arguments, takes huge arguments, or if a
    pass changes its parameters. A large function runs compiled (weft.tir.interp.limited). ``code``
    says for every function that was built how its native code was compared with the interpreter
    (weft.driver.code_check).
    """

    def __init__(self, seed: int = 0, size: int = 5, rtol: float = 1e-5) -> None:
        self.seed, self.size, self.rtol = seed, size, rtol
        self.runner = LimitedRunner()
        self.code: dict[str, str] = {}
        self._before: list[Results] = []
        self._latest_runs: Results = {}

    def enter_pass_ctx(self) -> None:
        """Start afresh."""
        self._before.clear()
        self._latest_runs.clear()
        self.runner.clear()
        self.code.clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Compute every function's results."""
        self._before.append(self._results(mod))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Compute every function's results again and compare."""
        before = self._before.pop()
        for var, func in mod.functions.items():
            old, expected = before.get(var.name_hint, (None, None))
            if func is old or expected is None or not isinstance(func, PrimFunc):
                continue
            if old is not None and len(old.params) != len(func.params):
                continue
            got = self._run(var.name_hint, func, mod)
            if var.name_hint in self.runner.skipped:
                continue
            difference: str | None = "it faults now"
            if got is not None:
                difference = self._difference(var.name_hint, func, expected, got)
            if difference:
                self.blame_code()
                raise VerifyError(
                    f"pass {info.name} changes what {var.name_hint} computes: {difference} "
                    f"(arguments of seed {self.seed}, symbolic extents {self.size})"
                )

    @deep_recursion
    def run_after_codegen(
        self,
        mod: IRModule,
        native: Callable[[], Native],
        compile_module: Callable[[IRModule], Native],
    ) -> None:
        """Compare the native code of a lowered module with the interpreter.

        ``native()`` loads the code of ``mod``, ``compile_module(mod)`` compiles another one.
        """
        report = check_code(mod, native, compile_module, seed=self.seed, size=self.size)
        self.code.update(report.rows())
        for name, problem in report.problems.items():
            raise VerifyError(
                f"code generation changes what {name} computes: {problem} (arguments of seed "
                f"{self.seed}, symbolic extents {self.size}); the program as it was lowered and "
                "its native code differ, no pass does"
            )

    def blame_code(self) -> None:
        """If functions ran compiled, check first whether their native code is wrong."""
        for func in self.runner.compiled_functions():
            with PassContext(instruments=[_CodeOnly(self)]):
                slots.evaluate.get().compiled(func)

    def _results(self, mod: IRModule) -> Results:
        return {
            var.name_hint: (func, self._run(var.name_hint, func, mod))
            for var, func in mod.functions.items()
            if isinstance(func, PrimFunc)
        }

    def _run(self, name: str, func: PrimFunc, mod: IRModule) -> list[object] | None:
        """The arguments after a run, then the returned value; None if the run failed."""
        known, results = self._latest_runs.get(name, (None, None))
        if known is func and not collect(func.body, GlobalVar):
            return results
        results = self._results_of(name, func, mod)
        self._latest_runs[name] = (func, results)
        return results

    def _results_of(self, name: str, func: PrimFunc, mod: IRModule) -> list[object] | None:
        arguments = random_arguments(name, func, self.seed, self.size)
        if arguments is None:
            return None
        try:
            result = self.runner(name, func, arguments, mod)
        except TVMError:
            return None
        return [*arguments, result]

    def _difference(
        self, name: str, func: PrimFunc, expected: list[object], got: list[object]
    ) -> str | None:
        for index, (want, have) in enumerate(zip(expected, got, strict=True)):
            if want is None and have is None:
                continue
            wanted, other = np.asarray(want), np.asarray(have)
            if wanted.dtype.kind in "iub":
                same = wanted == other
            else:
                wide = wanted.astype("float64"), other.astype("float64")
                allowed = self.rtol
                if name in self.runner.compiled:  # native code rounds differently in long sums
                    finite = np.abs(wide[0][np.isfinite(wide[0])])
                    allowed = max(allowed, COMPILED_TOLERANCE * finite.max(initial=0.0))
                same = np.isclose(*wide, rtol=self.rtol, atol=allowed, equal_nan=True)
            if not np.all(same):
                count = np.count_nonzero(~same)
                return f"{_name(func, index)} differs in {count} of {same.size} elements"
        return None


class _CodeOnly:
    """An instrument that only compares native code with the interpreter."""

    def __init__(self, verify: VerifyResults) -> None:
        self.run_after_codegen = verify.run_after_codegen


def _name(func: PrimFunc, index: int) -> str:
    if index == len(func.params):
        return "the returned value"
    param: Var = func.params[index]
    buffer = func.buffer_map.get(param)
    return f"argument {index} ({param.name if buffer is None else buffer.name})"
