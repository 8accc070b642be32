"""Tasks that forked children share: every result is there, whatever happens to a child."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from weft.support import shared_tasks
from weft.support.shared_tasks import results

HERE = os.getpid()
COUNT = 20


def numbered(number):
    return f"{number}".encode() * (number * 1000)


def tasks(special=None, count=COUNT):
    """Tasks of which each gives its number, many times; ``special`` is the fourth of a child."""

    def task(number):
        time.sleep(0.002)  # so that children get some
        if special is not None and os.getpid() != HERE and number >= count // 4:
            special()
        return numbered(number)

    return [lambda number=number: task(number) for number in range(count)]


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def children():
    """The numbers of the processes that any thread of this one has started."""
    threads = Path("/proc/self/task").glob("*/children")
    return sorted(" ".join([thread.read_text() for thread in threads]).split())


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves a process or an open file behind."""
    before = descriptors(), children()
    yield
    assert (descriptors(), children()) == before


@pytest.mark.parametrize("children", [0, 1, 3, 50])
def test_every_result_comes_once(children):
    found = list(results(tasks(), children))
    assert sorted(found) == [(number, numbered(number)) for number in range(COUNT)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_tasks(count):
    assert sorted(results(tasks(count=count), 3)) == [(n, numbered(n)) for n in range(count)]


def test_children_take_part():
    pids = {data for _, data in results([lambda: _pid_after(0.01)] * 20, 2)}
    assert len(pids) == 3
    assert str(HERE).encode() in pids


def _pid_after(seconds):
    time.sleep(seconds)
    return str(os.getpid()).encode()


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def left():
    os._exit(3)


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)


def raised():
    raise ValueError("only in a child")


def out_of_memory():
    raise MemoryError


@pytest.mark.parametrize("special", [killed, left, interrupted, raised, out_of_memory])
def test_what_a_child_fails_at_is_done_here(special):
    found = list(results(tasks(special), 2))
    assert sorted(found) == [(number, numbered(number)) for number in range(COUNT)]


def test_stuck_children_are_not_waited_for(monkeypatch):
    monkeypatch.setattr(shared_tasks, "PATIENCE", 0.2)
    monkeypatch.setattr(shared_tasks, "_STUCK", threading.Event())
    found = list(results(tasks(lambda: time.sleep(1000)), 2))
    assert sorted(found) == [(number, numbered(number)) for number in range(COUNT)]
    assert {data for _, data in results([lambda: _pid_after(0.01)] * 20, 2)} == {
        str(HERE).encode()
    }, "children were forked after some had been stuck"


def test_without_a_fork_this_process_does_all(monkeypatch):
    monkeypatch.setattr(os, "fork", lambda: (_ for _ in ()).throw(OSError("no processes")))
    found = list(results(tasks(), 2))
    assert sorted(found) == [(number, numbered(number)) for number in range(COUNT)]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_a_task_is_raised_here(error):
    def task():
        time.sleep(0.01)
        raise error("in every process")

    with pytest.raises(error, match="in every process"):
        list(results([*tasks(), task], 2))


def test_whoever_stops_asking_leaves_no_process():
    some = results(tasks(), 2)
    next(some)
    some.close()


def test_several_threads():
    found = {}

    def work(name):
        found[name] = sorted(results(tasks(), 2))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {name: [(n, numbered(n)) for n in range(COUNT)] for name in range(3)}


def test_a_child_ends_with_its_parent():
    """A parent that is killed leaves no child that goes on with the tasks."""
    reading, writing = os.pipe()
    parent = os.fork()
    if parent == 0:
        os.close(reading)
        slow = [lambda: (os.write(writing, b"."), time.sleep(0.05), b"")[2]] * 400
        list(results(slow, 1))
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    begun = 0
    while data := os.read(reading, 4096):  # until the last process that can write is gone
        begun += len(data)
    os.close(reading)
    assert begun < 100
