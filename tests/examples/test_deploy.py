"""The example of deployment: a C program classifies images; no Python is in its process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft
from weft.data import fashion_mnist

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "deploy"
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("deploy") / "build"
    subprocess.run(
        [sys.executable, str(EXAMPLE / "export_model.py"), str(made)], check=True, timeout=600
    )
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Werror", f"-I{made}", str(EXAMPLE / "classify.c"),
         str(made / "fashion.so"), "-o", str(made / "classify")],
        check=True, timeout=600,
    )  # fmt: skip
    return made


def run(folder, *paths):
    return subprocess.run(
        [str(folder / "classify"), *map(str, paths)], capture_output=True, text=True, timeout=600,
        env={"PATH": "/nowhere"}, check=False,
    )  # fmt: skip


def test_the_program_names_the_classes(folder):
    data = fashion_mnist.load_subset().first(8)
    model = weft.load(folder / "fashion.weft")
    paths = [folder / f"image_{number}.pgm" for number in range(8)]
    done = run(folder, *paths)
    assert done.returncode == 0, done.stderr
    images = data.as_float()
    right = 0
    for number, line in enumerate(done.stdout.splitlines()):
        scores = model(images[number : number + 1])[0]
        name, percent = re.fullmatch(r".*pgm: (.+) \((\S+) %\)", line).groups()
        assert name == fashion_mnist.CLASS_NAMES[int(np.argmax(scores))]
        assert float(percent) == pytest.approx(100 * scores.max(), abs=0.06)
        right += int(np.argmax(scores)) == data.labels[number]
    assert right >= 7


def test_wrong_images_are_refused(folder, tmp_path):
    (tmp_path / "text.pgm").write_text("P5 3 3 255\n123456789", encoding="utf-8")
    for path in (tmp_path / "text.pgm", tmp_path / "none.pgm"):
        done = run(folder, path)
        assert done.returncode == 2
        assert "expected a PGM image of 28 by 28 grey values" in done.stderr


def test_no_python_is_linked(folder):
    listed = subprocess.run(
        ["ldd", str(folder / "classify")], capture_output=True, text=True, check=True
    ).stdout
    assert "fashion.so" in listed
    assert "python" not in listed
    assert "not found" not in listed
