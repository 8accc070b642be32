"""Settings that every test and every doctest runs under."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from importlib.util import find_spec

import pytest
from hypothesis import settings

from tests.lib.sampling import is_sampled, left_out

os.environ.setdefault("MPLBACKEND", "Agg")

# `make test` gives the same verdict twice; the fuzzers of tests/fuzz print and take their seeds.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# A shell that starts tests in the background has them ignore Ctrl-C, and all that they start too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The heap of a test process is large and hardly any of it is garbage: walk it seldom.
gc.set_threshold(1_000_000, 5, 5)

# A package that tests install: collected, its modules would register operators in every process.
# The notebooks of weft course are no modules; tests/course runs them cell by cell.
collect_ignore = ["tests/driver/acme_weft", "src/weft/data/course", "tests/compat/tutorials"]
if find_spec("ray") is None:  # an extra that dev has not; the module imports it
    collect_ignore.append("src/weft/driver/cluster/machines.py")

_ROUND_TRIPPED: set[object] = set()
"""Digests of bodies, and what texts and JSON were made of, that were checked in this process."""

_KEPT = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Give the session (and the worker processes it starts) an object cache of its own."""
    if "WEFT_CACHE_DIR" not in os.environ:
        config.stash[_KEPT] = tempfile.TemporaryDirectory(prefix="weft-cache-")
        os.environ["WEFT_CACHE_DIR"] = config.stash[_KEPT].name


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--sample``: what `make test` gives (``tests/lib/sampling.py``)."""
    parser.addoption(
        "--sample", action="store_true", help="run a part of the cases of tests marked `sampled`"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what a sample leaves out."""
    if is_sampled(config):
        unwanted = left_out(items)
        config.hook.pytest_deselected(items=[item for item in items if item in unwanted])
        items[:] = [item for item in items if item not in unwanted]


def pytest_collection_finish() -> None:
    """Let collections of garbage pass over what the imports made: most of the heap, for good."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove that cache; go through the heap a last time, not again and again while Python ends."""
    gc.collect()
    gc.freeze()
    kept = config.stash.get(_KEPT, None)
    if kept is not None:
        del os.environ["WEFT_CACHE_DIR"]
        kept.cleanup()


@pytest.fixture(autouse=True)
def every_built_module_round_trips(monkeypatch, request):
    """Whatever a test builds, its text gives it back (``no_round_trip`` says why one does not).

    Of bodies of PrimFuncs, a sample (`make test`) tries a quarter in text and a sixteenth in JSON,
    chosen by their digests; other runs try all.
    """
    if request.node.get_closest_marker("no_round_trip") is not None:
        return
    build = sys.modules.get("weft.driver.build")
    if build is None:
        return
    from tests.lib.round_trip import assert_json_round_trip, assert_text_round_trip, form_of
    from weft.ir.structural import structural_digest
    from weft.tir.function import PrimFunc
    from weft.tir.stmt import Evaluate

    share = 4 if is_sampled(request.config) else 1
    compile_cached, lower_functions = build.compile_cached, build.lower_functions
    digests = {}  # of bodies that the test builds, some of them in several modules

    def check(mod):
        """Of bodies that are not chosen, or equal to one that was tried, only signatures are.

        A module whose functions, and the names in them, were all tried is not tried again.
        """
        bodies = [func.body for func in mod.functions.values() if isinstance(func, PrimFunc)]
        for body in bodies:
            if body not in digests:
                digests[body] = structural_digest(body, map_free_vars=True)
        short = {
            var: func.with_(body=Evaluate(0)) if isinstance(func, PrimFunc)
            and (digests[func.body] in _ROUND_TRIPPED or digests[func.body][0] % share) else func
            for var, func in mod.functions.items()
        }  # fmt: skip
        in_json = {
            var: func
            for var, func in short.items()
            if not isinstance(func, PrimFunc) or digests.get(func.body, b"\1")[0] % share**2 == 0
        }
        forms = {var: (var.name_hint, *form_of(func)) for var, func in short.items()}
        for functions, assert_round_trip in (
            (short, assert_text_round_trip),
            (in_json, assert_json_round_trip),
        ):
            new = {(assert_round_trip, forms[var]) for var in functions} - _ROUND_TRIPPED
            if functions and (new or mod.attrs or mod.global_infos):
                assert_round_trip(type(mod)(functions, None, mod.attrs, mod.global_infos))
            _ROUND_TRIPPED.update(new)
        _ROUND_TRIPPED.update([digests[body] for body in bodies])

    def checked_compile(mod, *args, **kwargs):
        check(mod)
        return compile_cached(mod, *args, **kwargs)

    def checked_lower(mod, *args):
        check(mod)
        return lower_functions(mod, *args)

    monkeypatch.setattr(build, "compile_cached", checked_compile)
    monkeypatch.setattr(build, "lower_functions", checked_lower)


@pytest.fixture(autouse=True)
def every_schedule_replays(request):
    """Schedules are checked after every edit, and their traces make their modules again.

    The marker ``no_replay(reason)`` exempts tests that edit the state by hand or replay themselves.
    """
    if "weft.tir" not in sys.modules:
        yield
        return
    from tests.lib.replay import every_schedule_checked

    with every_schedule_checked(replay=request.node.get_closest_marker("no_replay") is None):
        yield


@pytest.fixture(autouse=True)
def every_pass_keeps_types(request):
    """After every pass, what the graph says of its values is what the rules say.

    The marker ``ill_typed(reason)`` exempts tests that write such a pass on purpose.
    """
    if "weft.relax" not in sys.modules or request.node.get_closest_marker("ill_typed") is not None:
        yield
        return
    from tests.lib.typed_passes import every_pass_typed

    with every_pass_typed():
        yield
