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
TELLS = """
import os, sys, threading, time, warnings
from weft.support.forks import hold_over_forks

warnings.simplefilter("ignore", DeprecationWarning)
lock, later = threading.RLock(), threading.RLock()
is_taken, waits = threading.Event(), threading.Event()
hold_over_forks(lock)

def hold():
    with lock:
        is_taken.set()
        waits.wait()
        hold_over_forks(later)
        later.acquire()
    time.sleep(0.3)
    later.release()

thread = threading.Thread(target=hold)
thread.start()
is_taken.wait()
threading.Timer(0.2, waits.set).start()
child = os.fork()  # while it waits for the first lock, a thread tells of the second, and holds it
taken = lock.acquire(blocking=False) and later.acquire(blocking=False)
hold_over_forks(threading.RLock())
if child == 0:
    os._exit(0 if taken else 1)
assert taken
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
COMPILES = """
import os, sys, threading, warnings
from weft.runtime.native.llvm import object_from_ir
from weft.support.llvm_binding import binding

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
BUILDS = """
import os, signal, sys, threading, warnings
import numpy as np
import weft
from weft.script import tir as T
from weft.script.parser.entry import from_source

os.environ["WEFT_NO_CACHE"] = "1"
warnings.simplefilter("ignore", DeprecationWarning)
text = '@T.prim_func\\ndef f(A: T.Buffer((4,), "int32")):\\n    A[0] = {}\\n'
runs, has_built = [True], threading.Event()

def build_on():
    number = 0
    while runs:
        weft.build(from_source(text.format(number)))
        number += 1
        has_built.set()

thread = threading.Thread(target=build_on)
thread.start()
has_built.wait()
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # a child that hangs fails the test
        a = np.zeros(4, "int32")
        weft.build(from_source(text.format(7)))["f"](a)
        os._exit(0 if a[0] == 7 else 1)
    children.append(child)
statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
runs.clear()
thread.join()
assert statuses == [0] * 5, statuses
"""
COMPUTES = """
import os, signal, sys, threading, warnings
from weft.support.lazy_property import lazy_property

warnings.simplefilter("ignore", DeprecationWarning)
is_computing, waits = threading.Event(), threading.Event()

class Slow:
    is_child = False

    @lazy_property
    def value(self):
        if not self.is_child:
            is_computing.set()
            waits.wait()
        return 3

thread = threading.Thread(target=lambda: Slow().value)
thread.start()
is_computing.wait()
child = os.fork()
if child == 0:
    signal.alarm(300)
    mine = Slow()
    mine.is_child = True
    os._exit(0 if mine.value == 3 else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
waits.set()
sys.exit(status)
"""
IMPORTS = """
import os, sys, threading, time, warnings
from pathlib import Path
from weft.support import forks

warnings.simplefilter("ignore", DeprecationWarning)
forks.hold_over_forks(threading.RLock())
folder = Path(sys.argv[1])
(folder / "slow_module.py").write_text(
    "import time; import __main__; __main__.is_importing.set(); time.sleep(0.3); value = 1"
)
sys.path.insert(0, str(folder))
is_importing = threading.Event()
thread = threading.Thread(target=__import__, args=("slow_module",))
thread.start()
is_importing.wait()
child = os.fork()
if child == 0:
    import slow_module
    os._exit(0 if slow_module.value == 1 else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

PROGRAMS = {
    "lock": FORKS, "lock of which it hears late": TELLS, "llvm": COMPILES, "build": BUILDS,
    "attribute": COMPUTES, "import": IMPORTS,
}  # fmt: skip
FIRST_BUILD = """
import os, sys, threading, time, warnings
import numpy as np
import weft
from weft.script import from_source

warnings.simplefilter("ignore", DeprecationWarning)
TEXT = '@T.prim_func\\ndef f(A: T.Buffer((4,), "int32")):\\n    A[0] = %d\\n'

def build():
    return weft.build(from_source(TEXT % 7))["f"](np.zeros(4, "int32"))

thread = threading.Thread(target=build)
thread.start()  # imports what builds, looks at the processor, starts a worker
time.sleep(DELAY)
child = os.fork()
if child == 0:
    build()
    os._exit(0)
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_fork_waits(program, tmp_path):
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("delay", [0.05, 0.2, 0.5])
def test_a_child_builds_although_a_thread_was_building_for_the_first_time(delay):
    environment = {**os.environ, "WEFT_NO_CACHE": "1"}
    program = FIRST_BUILD.replace("DELAY", str(delay))
    subprocess.run([sys.executable, "-c", program], env=environment, check=True, timeout=300)
