"""Functions sent to another process: what they use goes with them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import pytest

from weft.support.errors import IRTypeError
from weft.support.functions_by_value import dumps

SCALE = 3


def scaled(x, *, offset=1):
    return SCALE * x + offset


def elsewhere(function, *arguments):
    """What a fresh process computes, in which no module of the tests is imported."""
    program = (
        "import pickle, sys; f, args = pickle.load(sys.stdin.buffer); "
        "sys.stdout.buffer.write(pickle.dumps(f(*args)))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=dumps((function, arguments)),
        capture_output=True,
        check=True,
        env=env,
    )
    return pickle.loads(done.stdout)


def test_functions_of_modules_local_ones_and_lambdas():
    factor = 5

    def local(x, *more, power=2):
        """Uses a global, a default and a variable of the function around it."""
        return (SCALE * x**power + factor, more, os.path.basename("a/b"))

    assert elsewhere(scaled, 2) == 7
    assert elsewhere(local, 2, "more") == (17, ("more",), "b")
    assert elsewhere(lambda x: scaled(x, offset=factor), 1) == 8
    assert elsewhere(os.path.join, "a", "b") == "a/b"


def test_functions_that_call_themselves_and_each_other():
    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert elsewhere(even, 10) is True
    assert elsewhere(odd, 10) is False


def test_names_and_defaults_stay():
    def local(x=4, *, y=SCALE):
        """The sum."""
        return x + y

    again = pickle.loads(dumps(local))
    assert again() == 7
    assert again.__name__ == "local"
    assert again.__qualname__.endswith("<locals>.local")
    assert again.__module__ == __name__


def test_functions_of_a_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, subprocess, sys\n"
        "from weft.support.functions_by_value import dumps\n"
        "K = 2\n"
        "def twice(x):\n    return K * x\n"
        "run = 'import pickle, sys; print(pickle.load(sys.stdin.buffer)(21))'\n"
        "if __name__ == '__main__':\n"
        "    subprocess.run([sys.executable, '-c', run], input=dumps(twice), check=True)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    assert done.stdout == "42\n"


def test_what_cannot_be_sent_is_refused():
    lock = threading.Lock()
    with pytest.raises(IRTypeError, match=r"cannot be sent to another process: .*lock"):
        dumps(lambda: lock)

    def unset():
        return later

    with pytest.raises(IRTypeError, match="unset.*cannot be sent to another process"):
        dumps(unset)
    later = 1
    assert pickle.loads(dumps(unset))() == later
