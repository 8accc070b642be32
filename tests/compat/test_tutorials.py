"""What TVM 0.20's tutorials for CPUs teach, as programs of our own with the same names.

Each runs in a process of its own with ``tvm`` as weft. What the tutorial does on a GPU, on another
machine or with a paged cache stands last, and says what it is planned with.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weft
from tests.lib.python_process import run_file
from weft.support.facade import PlannedNameError

FOLDER = Path(__file__).resolve().parent / "tutorials"
WHOLE = (
    "tensorir_by_hand",
    "tensorir_scheduled",
    "relax_by_hand",
    "relax_transformed",
    "quick_start",
)
STOPS = {
    "ir_module": r"dlight\.gpu is a name of TVM 0\.20 .*part of: code generation for GPUs",
    "own_pipeline": r"relax\.backend\.cuda is a name of TVM 0\.20 .*code generation for GPUs",
    "model_tuned": r"the target kind 'cuda' is not available; .*weft has no code for GPUs",
    "other_machines": r"weft\.rpc is a name of TVM 0\.20 .*measurement on other machines",
    "language_model": r"PagedKVCache is a name of TVM 0\.20 .*paged caches for large language",
}
"""Program -> the message at which its last lines stop."""


def test_each_program_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == {*WHOLE, *STOPS}
    assert len(WHOLE) + len(STOPS) == 10


@pytest.mark.parametrize("program", WHOLE)
def test_the_program_runs_whole(program, tmp_path):
    done = run_file(FOLDER / f"{program}.py", tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("program", STOPS)
def test_the_program_runs_to_the_part_that_is_planned(program, tmp_path):
    """The last lines stop, all before them ran."""
    path = FOLDER / f"{program}.py"
    done = run_file(path, tmp_path)
    assert done.returncode == 1
    assert re.search(STOPS[program], done.stderr), done.stderr[-2000:]
    first = re.search(rf'File "{re.escape(str(path))}", line (\d+)', done.stderr)
    assert first is not None
    assert int(first[1]) > len(path.read_text().splitlines()) - 4, done.stderr[-2000:]


def test_a_pass_of_the_tutorial_on_language_models_says_what_it_is_part_of():
    with pytest.raises(PlannedNameError, match=r"part of: C\+\+ sources linked into models"):
        _ = weft.relax.transform.AttachExternModules
