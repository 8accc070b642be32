"""Parameters and fixtures of tests, as ``tvm.testing`` writes them, on pytest.

``parameter`` makes a fixture that takes each of some values; ``parameters`` several fixtures whose
values go together (``weft.testing.plugin`` ties them); ``fixture`` may keep what it computed.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import pickle
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest

GROUP: Final = "_weft_parameter_group_"
"""Attribute of a fixture's function: ``(group, values, ids)`` of ``parameters``."""
_GROUPS = itertools.count()


def parameter(
    *values: Any,
    ids: Sequence[str] | Callable[[Any], Any] | None = None,
    by_dict: Mapping[str, Any] | None = None,
) -> Any:
    """A fixture that takes each value in turn; assign it to a name, in a module or a class.

    ``by_dict`` gives ids and values together.
    """
    if by_dict is not None:
        if values or ids is not None:
            raise TypeError("parameter: expected values with ids, or by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())

    def value(*_self: Any, request: pytest.FixtureRequest) -> Any:
        return request.param

    return pytest.fixture(params=values, ids=ids)(value)


def parameters(*value_sets: Sequence[Any], ids: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Fixtures that take the values of one set together: ``a, b = parameters((1, 2), (3, 4))``."""
    group = next(_GROUPS)
    made = []
    for values in zip(*value_sets, strict=True):

        def value(*_self: Any, request: pytest.FixtureRequest) -> Any:
            return request.param

        setattr(value, GROUP, (group, values, ids))
        made.append(pytest.fixture(value))
    return tuple(made)


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with ``cache_return_value`` computed once for equal arguments.

    A kept value is handed out as a copy, so a test cannot change what another one gets.
    """
    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    return pytest.fixture(_kept(func) if cache_return_value else func)


def _kept(func: Callable[..., Any]) -> Callable[..., Any]:
    cache: dict[bytes, Any] = {}
    has_self = next(iter(inspect.signature(func).parameters), "") == "self"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            key = pickle.dumps((args[1:] if has_self else args, sorted(kwargs.items())))
        except (pickle.PicklingError, TypeError, AttributeError):
            return func(*args, **kwargs)
        if key not in cache:
            cache[key] = func(*args, **kwargs)
        return copy.deepcopy(cache[key])

    return wrapper


def main() -> None:
    """Run the tests of the calling file with pytest, and exit with its status."""
    file = sys._getframe(1).f_code.co_filename
    sys.exit(pytest.main([file, *sys.argv[1:]]))
