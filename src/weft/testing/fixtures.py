"""Parameters and fixtures of tests as in ``tvm.testing``, on top of pytest.

``parameter`` makes a fixture that takes each of some values, ``parameters`` several fixtures whose
values change together (done by ``weft.testing.plugin``); ``fixture`` may cache what it computes.
"""

from __future__ import annotations

import copy
import functools
import inspect
import itertools
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

import pytest

from weft.support.errors import IRTypeError, IRValueError

GROUP: Final = "_weft_parameter_group_"
"""Attribute of a fixture's function: ``(group, values, ids)`` of ``parameters``."""
USES: Final = "_weft_fixture_uses_"
"""Attribute of the function of a cached fixture: its ``Uses``."""
Decorator = Callable[[Callable[..., object]], Callable[..., object]]
_GROUPS = itertools.count()


def parameter(
    *values: object,
    ids: Sequence[str] | Callable[[Any], object] | None = None,
    by_dict: Mapping[str, object] | None = None,
) -> Any:
    """A fixture that takes each value in turn; assign it to a name, in a module or a class.

    ``by_dict`` gives ids and values together.
    """
    if by_dict is not None:
        if values or ids is not None:
            raise IRValueError("parameter: expected values with ids, or by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())

    return pytest.fixture(params=values, ids=ids, scope="session")(staticmethod(_current))


def _current(request: pytest.FixtureRequest) -> object:
    """The function of a parameter's fixture: its value; static, so that classes may hold it."""
    return request.param


def parameters(*value_sets: Sequence[object], ids: Sequence[str] | None = None) -> tuple[Any, ...]:
    """Fixtures that take the values of one set together: ``a, b = parameters((1, 2), (3, 4))``."""
    group = next(_GROUPS)
    fixtures = []
    for values in zip(*value_sets, strict=True):

        def value(*_self: object, request: pytest.FixtureRequest) -> object:
            return request.param

        setattr(value, GROUP, (group, values, ids))
        fixtures.append(pytest.fixture(value))
    return tuple(fixtures)


def fixture(func: Callable[..., object] | None = None, *, cache_return_value: bool = False) -> Any:
    """A pytest fixture; with ``cache_return_value`` computed once for equal arguments.

    Tests get copies of a cached value, so that none changes what another gets; it is dropped after
    the last test that uses it (the plugin counts them). With ``TVM_TEST_DISABLE_CACHE=1`` in the
    environment it is computed for every test.
    """
    if func is None:
        return functools.partial(fixture, cache_return_value=cache_return_value)
    disabled = bool(int(os.environ.get("TVM_TEST_DISABLE_CACHE", "0") or "0"))
    return pytest.fixture(_kept(func) if cache_return_value and not disabled else func)


class Uses:
    """How many tests use a cached fixture, and how many of them have run."""

    def __init__(self) -> None:
        self.planned = 0
        self.done = 0


def _kept(func: Callable[..., object]) -> Callable[..., Iterator[object]]:
    cache: dict[object, object] = {}
    uses = Uses()

    @functools.wraps(func)
    def wrapper(*args: object, **kwargs: object) -> Iterator[object]:
        try:
            key = _key(func, args, kwargs)
            if key not in cache:
                cache[key] = func(*args, **kwargs)
            yield copy.deepcopy(cache[key])
        finally:
            uses.done += 1
            if 0 < uses.planned <= uses.done:
                cache.clear()

    setattr(wrapper, USES, uses)
    return wrapper


def _key(
    func: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """What identifies the arguments: they themselves, or their pickled form."""
    has_self = next(iter(inspect.signature(func).parameters), "") == "self"
    given = (args[1:] if has_self else args, tuple(sorted(kwargs.items(), key=lambda kv: kv[0])))
    try:
        hash(given)
    except TypeError:
        pass
    else:
        return given
    try:
        return pickle.dumps(given)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise IRTypeError(
            f"fixture {getattr(func, '__name__', '')!r}: cache_return_value needs arguments that "
            f"can be hashed or pickled: {error}"
        ) from error


def xfail_parameterizations(*xfail_params: str, reason: str) -> Decorator:
    """Expect a test, which takes ``request``, to fail with the parameters of those ids."""
    return _of_parameters(xfail_params, pytest.xfail, reason)


def skip_parameterizations(*skip_params: str, reason: str) -> Decorator:
    """Skip a test, which takes ``request``, with the parameters of those ids (``"small-2"``)."""
    return _of_parameters(skip_params, pytest.skip, reason)


def _of_parameters(ids: Sequence[str], stop: Callable[..., NoReturn], reason: str) -> Decorator:
    def decorate(test: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(test)
        def wrapper(request: pytest.FixtureRequest, *args: object, **kwargs: object) -> object:
            _, _, rest = request.node.name.partition("[")
            if rest.removesuffix("]") in ids:
                stop(reason=f"{request.node.nodeid}: {reason}")
            return test(*args, request=request, **kwargs)

        return wrapper

    return decorate


def main() -> None:
    """Run the tests of the calling file with pytest, and exit with its status."""
    file = sys._getframe(1).f_code.co_filename
    sys.exit(pytest.main([file, *sys.argv[1:]]))
