"""Names of weft's own that will go: they warn where they are used, and a test sees that they do go.

A name stays for at least two minor versions after the one that first warns (CONTRIBUTING.md).
Spellings of other years of TVM are no such names: ``weft.compat`` has them for good.
"""

from __future__ import annotations

import datetime
import functools
import re
import warnings
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import IRValueError

P = ParamSpec("P")
R = TypeVar("R")

_VERSION: Final = re.compile(r"\d+(\.\d+)*")


def deprecated(
    name: str, *, since: str, removal: str, replacement: str
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator of functions that will go.

    A call gives a DeprecationWarning at the caller's line; as Python's filters are set when nobody
    changes them, each line is told once, and only in the main program and in tests.

    Args:
        name: what users write, as ``weft.old_name``.
        since: the version that first warns.
        removal: the version in which the name is no longer there, ``"0.4"``, or the day from which
            on no release has it, ``"2027-06-30"``.
        replacement: what to write instead.

    Raises:
        IRValueError: ``removal`` is neither.

    >>> @deprecated("weft.twice", since="0.2", removal="0.4", replacement="weft.double")
    ... def twice(x):
    ...     return 2 * x
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("default")
    ...     twice(4)
    8
    >>> print(told[0].message)
    weft.twice is deprecated since weft 0.2 and goes in 0.4; write weft.double
    """
    is_overdue(removal, since)  # raises for what is neither a version nor a day
    goes = f"after {removal}" if _day(removal) else f"in {removal}"
    message = f"{name} is deprecated since weft {since} and goes {goes}; write {replacement}"

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def warn_and_call(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warn_and_call

    return decorate


def is_overdue(removal: str, version: str, today: datetime.date | None = None) -> bool:
    """Whether a name that goes at ``removal`` must not be in ``version``, released ``today``.

    >>> is_overdue("0.4", "0.3.2"), is_overdue("0.4", "0.4.0"), is_overdue("0.9", "0.10")
    (False, True, True)
    >>> is_overdue("2027-06-30", "0.3", datetime.date(2027, 7, 1))
    True
    """
    day = _day(removal)
    if day is not None:
        return (today or datetime.date.today()) > day
    return _numbers(version) >= _numbers(removal)


def _day(text: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    matched = _VERSION.match(version)
    if matched is None or version.count("-") == 2:
        raise IRValueError(f"expected a version such as 0.4 or a day, 2027-06-30; got {version!r}")
    numbers = [int(part) for part in matched[0].split(".")]
    while numbers and not numbers[-1]:  # 1.0 is 1
        numbers.pop()
    return tuple(numbers)
