"""``WellFormedInstrument``: every pass's input and output must be well-formed graph programs."""

from __future__ import annotations

from typing import Final

from weft.ir.instrument import PassInstrument
from weft.ir.module import IRModule
from weft.ir.transform import PassInfo
from weft.relax.analysis.well_formed import find_problem
from weft.support.errors import VerifyError

REPAIRING: Final = frozenset({"Normalize", "NormalizeGlobalVar", "ResolveGlobals"})
"""Passes that accept ill-formed modules, since their purpose is to repair them."""


class WellFormedInstrument(PassInstrument):
    """Checks the module before (unless told not to) and after each pass; raises VerifyError."""

    def __init__(
        self, check_struct_info: bool = True, validate_before_transform: bool = True
    ) -> None:
        self.check_struct_info = check_struct_info
        self.validate_before_transform = validate_before_transform

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check the pass's input."""
        if self.validate_before_transform:
            self._check(mod, info.name, "before")

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Check the pass's output."""
        self._check(mod, info.name, "after")

    def _check(self, mod: IRModule, name: str, when: str) -> None:
        if name in REPAIRING:
            return
        problem = find_problem(mod, self.check_struct_info)
        if problem is not None:
            raise VerifyError(f"{problem} (found {when} pass {name})")
