"""Instruments: observers of passes, given to a ``PassContext``.

An instrument is any object with some of ``enter_pass_ctx()``, ``exit_pass_ctx()``,
``should_run(mod, info) -> bool``, ``run_before_pass(mod, info)``, ``run_after_pass(mod, info)``.
Builds call ``run_after_codegen(mod, native, compile_module)`` with the lowered module, its native
code and the function that compiles a module, and ``run_after_build(mod, executable)`` with the
graph that was lowered.
"""

from __future__ import annotations

import difflib
import functools
import re
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import overload

from weft.ir.module import IRModule
from weft.ir.structural import structural_digest
from weft.ir.transform import PassInfo


class PassInstrument:
    """A base with hooks that do nothing, for subclasses."""

    def enter_pass_ctx(self) -> None:
        """The context begins."""

    def exit_pass_ctx(self) -> None:
        """The context ends."""

    def should_run(self, mod: IRModule, info: PassInfo) -> bool:
        """Whether the pass may run."""
        return True

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Before a pass."""

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """After a pass."""


@overload
def pass_instrument(cls: type) -> type[PassInstrument]: ...
@overload
def pass_instrument(cls: None = None) -> Callable[[type], type[PassInstrument]]: ...
def pass_instrument(
    cls: type | None = None,
) -> type[PassInstrument] | Callable[[type], type[PassInstrument]]:
    """Class decorator: the class as an instrument (its hooks are found by name)."""

    def apply(given: type) -> type[PassInstrument]:
        instrument = type(given.__name__, (given, PassInstrument), {})
        functools.update_wrapper(instrument, given, updated=())
        return instrument

    return apply if cls is None else apply(cls)


class PassTimingInstrument(PassInstrument):
    """Seconds each pass took, nested as they were called; ``render()`` is a table."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str, float]] = []
        self._running: list[tuple[int, float]] = []

    def enter_pass_ctx(self) -> None:
        """Forget the times of an earlier context."""
        self.rows.clear()
        self._running.clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Start the clock of a pass."""
        self.rows.append((len(self._running), info.name, 0.0))
        self._running.append((len(self.rows) - 1, time.perf_counter()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Stop the clock of a pass."""
        index, begin = self._running.pop()
        depth, name, _ = self.rows[index]
        self.rows[index] = (depth, name, time.perf_counter() - begin)

    def render(self) -> str:
        """One line for each pass: its time in microseconds and its share of the top-level total."""
        total = sum(seconds for depth, _, seconds in self.rows if depth == 0) or 1.0
        lines = [
            f"{'  ' * depth}{name}: {seconds * 1e6:.0f}us ({100 * seconds / total:.2f}%)"
            for depth, name, seconds in self.rows
        ]
        return "\n".join(lines)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after the passes of these names (None: all passes)."""

    def __init__(
        self,
        print_before_pass_names: Collection[str] | None = (),
        print_after_pass_names: Collection[str] | None = (),
        write: Callable[[str], None] = print,
    ) -> None:
        self.before, self.after, self.write = print_before_pass_names, print_after_pass_names, write

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module as the pass gets it."""
        if self.before is None or info.name in self.before:
            self.write(f"# before {info.name}\n{mod.script()}")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Print the module as the pass left it."""
        if self.after is None or info.name in self.after:
            self.write(f"# after {info.name}\n{mod.script()}")


def PrintBeforeAll(  # noqa: N802 - TVM's name
    write: Callable[[str], None] = print,
) -> PassPrintingInstrument:
    """An instrument that prints the module before every pass."""
    return PassPrintingInstrument(None, (), write)


def PrintAfterAll(  # noqa: N802 - TVM's name
    write: Callable[[str], None] = print,
) -> PassPrintingInstrument:
    """An instrument that prints the module after every pass."""
    return PassPrintingInstrument((), None, write)


class PrintChanged(PassInstrument):
    """Writes the text difference of every pass that changed the module.

    ``write`` takes the text (default: print).
    """

    def __init__(self, write: Callable[[str], None] = print) -> None:
        self.write = write
        self._before: list[tuple[bytes, str]] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Remember the module."""
        self._before.append((structural_digest(mod), mod.script()))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the difference, if any."""
        digest, text = self._before.pop()
        if structural_digest(mod) == digest:
            return
        changes = difflib.unified_diff(
            text.splitlines(), mod.script().splitlines(), "before", "after", lineterm="", n=2
        )
        self.write(f"# {info.name} changed the module\n" + "\n".join(changes))


class DumpIR(PassInstrument):
    """Writes the module after each pass into a folder: ``NNN_Name.py``."""

    def __init__(self, dump_dir: str | Path, refresh: bool = False) -> None:
        self.folder = Path(dump_dir)
        self.folder.mkdir(parents=True, exist_ok=True)
        if refresh:
            for old in self.folder.glob("[0-9][0-9][0-9]_*.py"):
                old.unlink()
        self.count = 0

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Write the module."""
        name = re.sub(r"[^\w.-]", "_", info.name)
        (self.folder / f"{self.count:03d}_{name}.py").write_text(mod.script() + "\n")
        self.count += 1


class VerifyInstrument(PassInstrument):
    """Calls a check on the module after each pass; its error gets a note that names the pass."""

    def __init__(self, check: Callable[[IRModule], object]) -> None:
        self.check = check

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check the module."""
        try:
            self.check(mod)
        except Exception as error:
            error.add_note(f"the module is not well formed after pass {info.name}")
            raise


__all__ = [
    "DumpIR", "PassInstrument", "PassPrintingInstrument", "PassTimingInstrument", "PrintAfterAll",
    "PrintBeforeAll", "PrintChanged", "VerifyInstrument", "pass_instrument",
]  # fmt: skip


def __dir__() -> list[str]:
    """What there is for users: not the modules that this one imports."""
    return list(__all__)
