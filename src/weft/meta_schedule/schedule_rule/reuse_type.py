"""Whether and where a tiled block keeps data near: ``ReuseType``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weft.support.errors import IRValueError


class ReuseType(NamedTuple):
    """A copy of a buffer inside the tiles.

    Args:
        req: "no" copy, "must" be there, or "may": then schedules without it are given too.
        levels: the levels of tiles, counted from 1, whose loops hold the copy; each gives a
            schedule.
        scope: the memory of the copy, such as "global", "shared" or "local".
    """

    req: str
    levels: Sequence[int]
    scope: str

    def as_dict(self) -> dict[str, object]:
        """The fields by name, as TVM passes them."""
        return {"req": self.req, "levels": list(self.levels), "scope": self.scope}


NO_REUSE = ReuseType("no", (), "")


def checked_reuse(reuse: ReuseType | None, name: str, kinds: Sequence[str]) -> ReuseType:
    """The reuse that an argument of a rule asks for; none where it is None."""
    if reuse is None:
        return NO_REUSE
    if reuse.req not in kinds:
        raise IRValueError(f"{name}: expected req to be {' or '.join(kinds)}, got {reuse.req!r}")
    return reuse
