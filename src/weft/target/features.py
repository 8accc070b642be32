"""The instruction sets that a processor must have to run code for a target."""

from __future__ import annotations

from weft.backends.cpu.isa import architecture_of
from weft.backends.cpu.isa.features import instruction_sets, of_its_own
from weft.target.host import LLVMOptions, host_cpu, host_features


def required_features(options: LLVMOptions) -> tuple[str, ...]:
    """The instruction sets that code compiled with these options may use, sorted.

    For a processor that its architecture does not list: if it is this machine's, all the sets that
    this machine has; else the processor's name, which no other processor has.

    >>> from weft.target.host import llvm_options
    >>> own, generic = [llvm_options(text) for text in ("llvm", "llvm -mcpu=generic")]
    >>> set(required_features(generic)) <= set(required_features(own))
    True
    """
    features = instruction_sets(architecture_of(options.triple), options.cpu, options.features)
    is_host = options.cpu == host_cpu()
    if is_host and len(options.features.split(",")) >= len(host_features()):
        features -= {of_its_own(options.cpu)}
    return tuple(sorted(features))
