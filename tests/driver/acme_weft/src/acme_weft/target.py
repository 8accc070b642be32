"""A target: this machine's CPU with one core, whose kernels are scheduled by ``Serial``."""

from acme_weft.schedules import Serial
from weft.backends.cpu.backend import CPUBackend
from weft.dlight import ScheduleGeneratedFunctions
from weft.relax.transform.stages import KERNELS, NORMS
from weft.target import Target, TargetKind


class Acme(CPUBackend):
    """Compiles for ``llvm -num-cores=1``."""

    kind = TargetKind("acme", ("cpu",))
    cpu = Target("llvm -num-cores=1")

    def features(self, target):
        """Those of the CPU."""
        return super().features(self.cpu)

    def options(self, target):
        """Those of the CPU."""
        return super().options(self.cpu)

    def graph(self, target):
        """Kernels, each with the rule."""
        return (*NORMS, *KERNELS, ScheduleGeneratedFunctions(*self.schedules(target)))

    def schedules(self, target):
        """The rule of this package."""
        return (Serial(),)

    def emit(self, mod, target, *, checks=True):
        """Machine code of the CPU."""
        return super().emit(mod, self.cpu, checks=checks)


BACKEND = Acme()
