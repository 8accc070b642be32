"""``relax.ir.instrument``: instruments that look at graphs between passes."""

from weft.relax.analysis.instrument import WellFormedInstrument

__all__ = ["WellFormedInstrument"]
