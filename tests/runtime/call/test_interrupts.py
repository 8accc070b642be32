"""Ctrl-C while native code runs that calls Python back: the exception reaches the caller."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

from weft.runtime.call.interrupts import begins_with_signals, deferring, handle_waiting


@begins_with_signals
def beginning() -> None:
    """As the first instruction of a callback: a signal is handled in this function's frame."""
    signal.getsignal(signal.SIGINT)(signal.SIGINT, sys._getframe())  # noqa: SLF001


def elsewhere() -> None:
    signal.getsignal(signal.SIGINT)(signal.SIGINT, sys._getframe())  # noqa: SLF001


def test_a_signal_at_the_beginning_of_a_callback_waits():
    before = signal.getsignal(signal.SIGINT)
    with deferring():
        beginning()
        with pytest.raises(KeyboardInterrupt):
            handle_waiting()
        handle_waiting()
    assert signal.getsignal(signal.SIGINT) is before


def test_what_waits_is_raised_at_the_end_at_the_latest():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), deferring(), deferring():
        beginning()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_signal_anywhere_else_is_handled_at_once():
    with deferring(), pytest.raises(KeyboardInterrupt):
        elsewhere()


def test_only_the_main_thread_handles_signals():
    handlers = []

    def work():
        with deferring():
            handlers.append(signal.getsignal(signal.SIGINT))
            handle_waiting()

    with deferring():
        outside = signal.getsignal(signal.SIGINT)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert handlers == [outside]


def test_a_process_that_ignores_the_signal_goes_on_ignoring_it():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferring():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
