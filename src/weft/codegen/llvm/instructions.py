"""Refuses instructions that a program calls by name and that the target's processor lacks.

LLVM would end the process for such a call.
"""

from __future__ import annotations

import re

from weft.backends.cpu.isa import ARCHITECTURES, architecture_of
from weft.backends.cpu.isa.architecture import Architecture
from weft.backends.cpu.isa.features import offers
from weft.support.errors import CodegenError
from weft.target.features import required_features
from weft.target.host import LLVMOptions


def check_instructions(text: str, options: LLVMOptions) -> None:
    """Raise CodegenError if LLVM IR calls an instruction that the target may not have."""
    if not any(architecture.prefix in text for architecture in ARCHITECTURES):
        return
    here = architecture_of(options.triple)
    present = set(required_features(options))
    for architecture in ARCHITECTURES:
        pattern = rf"@\"?{re.escape(architecture.prefix)}([A-Za-z0-9.]+)"
        for name in sorted(set(re.findall(pattern, text))):
            if architecture is not here:
                raise CodegenError(
                    f"{architecture.prefix}{name} is an instruction of {architecture.name}, and "
                    f"the target is {options.triple}; call it under a test of the target"
                )
            _check_features(architecture, name, present, options.cpu)


def _check_features(architecture: Architecture, name: str, present: set[str], cpu: str) -> None:
    """Raise CodegenError where the processor is not known to have what an intrinsic needs."""
    rows = architecture.intrinsic_needs
    needed = next((need for pattern, need in rows if re.match(pattern, name)), "")
    if not offers(present, needed):
        features = [feature for feature in needed.split()[0].split("+") if feature not in present]
        raise CodegenError(
            f"{architecture.prefix}{name} needs {' and '.join(features)}, which the target's "
            f"processor {cpu} is not known to have; if it does, say so in the target: "
            f"-mattr={','.join([f'+{feature}' for feature in features])}"
        )
