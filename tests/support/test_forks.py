"""Locks over os.fork: a child compiles although a thread of its parent did at the time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

FORKS = """
import os, sys, threading, warnings
from weft.support.forks import hold_over_forks

warnings.simplefilter("ignore", DeprecationWarning)
lock, is_taken, waits = threading.RLock(), threading.Event(), threading.Event()
hold_over_forks(lock)

def hold():
    with lock:
        is_taken.set()
        waits.wait()

thread = threading.Thread(target=hold)
thread.start()
is_taken.wait()
threading.Timer(0.2, waits.set).start()
child = os.fork()  # once the thread lets go of the lock
assert waits.is_set()
taken = lock.acquire(blocking=False)
if child == 0:
    os._exit(0 if taken else 1)
assert taken
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
COMPILES = """
import os, sys, threading, warnings
from weft.runtime.llvm import binding, object_from_ir

warnings.simplefilter("ignore", DeprecationWarning)
binding()
runs = [True]

def compile_on():
    while runs:
        object_from_ir("define i32 @f(i32 %x) { ret i32 %x }")

threads = [threading.Thread(target=compile_on) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for _ in range(8):
    child = os.fork()
    if child == 0:
        lock = binding().ffi.lib._lock
        os._exit(0 if lock._lock.acquire(blocking=False) and object_from_ir("") else 1)
    children.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
runs.clear()
for thread in threads:
    thread.join()
assert children == [0] * 8, children
"""


@pytest.mark.parametrize("program", [FORKS, COMPILES], ids=["lock", "llvm"])
def test_a_fork_waits_for_the_lock(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
