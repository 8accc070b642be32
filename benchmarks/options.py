"""What the benchmarks' options mean, and how the commands end where one is wrong."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from weft.cli.errors import error_text
from weft.support.errors import IRValueError, TVMError

_SHOWN: Final = 5


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def chosen(rows: Sequence[Named], only: str) -> list[Named]:
    """The rows whose name has the text in it, in either case; IRValueError where there is none."""
    found = [row for row in rows if only.casefold() in row.name.casefold()]
    if not found:
        some = ", ".join([repr(row.name) for row in rows[:_SHOWN]])
        more = ", ..." * (len(rows) > _SHOWN)
        raise IRValueError(f"--only {only}: no row has that in its name; there are {some}{more}")
    return found


def positive(text: str) -> int:
    """The type of an option that counts something."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return int(text)


def status_of(command: Callable[[], int | None]) -> int:
    """Run a command: what it returns, or 0; 2 after an error, which is told in few lines."""
    try:
        return command() or 0
    except TVMError as error:
        print(f"benchmarks: {error_text(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks: interrupted", file=sys.stderr)
        return 130
