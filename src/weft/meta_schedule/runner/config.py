"""How often a program is run to measure it, and over which network."""

from __future__ import annotations

from typing import NamedTuple


class EvaluatorConfig(NamedTuple):
    """How a program is measured: once to warm up, then ``repeat`` times ``number`` runs.

    Attributes:
        number: runs whose mean is one time.
        repeat: how many times there are.
        min_repeat_ms: the least milliseconds of ``number`` runs; there are more where they take
            less.
        enable_cpu_cache_flush: write over the caches before each time, so that arguments come from
            memory; ``number`` is then 1.
    """

    number: int = 3
    repeat: int = 1
    min_repeat_ms: int = 100
    enable_cpu_cache_flush: bool = False


class RPCConfig(NamedTuple):
    """Where TVM's tracker of devices is; weft has none (``RPCRunner`` says what it has)."""

    tracker_host: str | None = None
    tracker_port: int | str | None = None
    tracker_key: str | None = None
    session_priority: int = 1
    session_timeout_sec: int = 10
