"""The names of weights in ``.weft`` files: kept, optional, checked, and shown."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest

import weft
from weft import relax
from weft.cli import main
from weft.runtime.weight_names import weight_name
from weft.script import ir
from weft.script import relax as R
from weft.support.errors import ArtifactFormatError


@ir.ir_module
class Layer:
    @R.function
    def main(
        x: R.Tensor((4, 64), "float32"),
        weight: R.Tensor((64, 64), "float32"),
        bias: R.Tensor((64,), "float32"),
    ):
        with R.dataflow():
            out = R.add(R.matmul(x, weight), bias)
            R.output(out)
        return out


def compiled(**names):
    """The layer with weights of these names."""
    values = {"weight": np.eye(64, dtype="float32"), "bias": np.ones(64, "float32")}
    return weft.compile(relax.transform.BindParams("main", values)(Layer), **names)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("names") / "layer.weft"
    compiled().save(path)
    return path


def with_manifest(saved, path, **fields):
    """A copy of a file whose manifest has other fields; None takes one away."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            if entry == "manifest.json":
                manifest = {**json.loads(data), **fields}
                kept = {key: value for key, value in manifest.items() if value is not None}
                data = json.dumps(kept).encode()
            new.writestr(entry, data)
    return path


def names_of(model):
    return {weight_name(constant) for constant in model.program.constants}


def test_a_loaded_model_knows_the_names_of_its_weights(saved):
    model = weft.load(saved)
    assert names_of(model) == {"weight", "bias"}
    labels = [label.split(" ")[0] for label, _ in model.memory().weights]
    assert labels == ["weight", "bias"]  # the largest first
    assert model.memory().weights == compiled().memory().weights


def test_names_make_no_two_files_of_one_model(saved, tmp_path):
    for number, model in enumerate((compiled(), weft.load(saved))):
        model.save(tmp_path / f"{number}.weft")
        assert (tmp_path / f"{number}.weft").read_bytes() == saved.read_bytes()


def test_a_file_without_names_is_loaded(saved, tmp_path):
    model = weft.load(with_manifest(saved, tmp_path / "old.weft", names=None))
    assert names_of(model) == {None}
    assert model.memory().weights[0][0].startswith("constant")
    np.testing.assert_array_equal(model(np.ones((4, 64), "float32")), np.full((4, 64), 2.0))


def test_names_of_other_tensors_are_damage(saved, tmp_path):
    path = with_manifest(saved, tmp_path / "wrong.weft", names=["weight"])
    with pytest.raises(ArtifactFormatError, match="damaged or cut off"):
        weft.load(path)


@pytest.mark.parametrize("names", [[1, 2], "weight", {"0": "weight"}])
def test_wrong_names_are_damage(saved, tmp_path, names):
    path = with_manifest(saved, tmp_path / "wrong.weft", names=names)
    with pytest.raises(ArtifactFormatError, match="its manifest's names"):
        weft.load(path)


def test_commands_show_the_names(saved, tmp_path, capsys):
    assert main.main(["show", str(saved)]) == 0
    text = capsys.readouterr().out
    assert "# Weights, as the code takes them:" in text
    assert "#   bias float32[64]: 256 bytes" in text
    page = tmp_path / "page.json"
    assert main.main(["viz", str(saved), "--json", str(page), "--no-times"]) == 0
    rows = json.loads(page.read_text(encoding="utf-8"))["memory"]["weights"]
    assert {row["name"].split(" ")[0] for row in rows} == {"weight", "bias"}
