"""What a feature finds on this machine; what a test sees of it is in test_plugin_parts.py."""

from __future__ import annotations

import sys

import pytest

from weft.testing import features
from weft.testing.features import Feature


@pytest.fixture
def made(monkeypatch, pytestconfig):
    """Make features that are forgotten after the test."""
    monkeypatch.setattr(Feature, "_all_features", dict(Feature._all_features))
    known = pytestconfig.getini("markers")
    before = list(known)
    known += [f"{name}: of this test" for name in ("moon", "sun", "dial", "on", "off", "host")]
    yield Feature
    known[:] = before


def reasons(marks):
    return [mark.kwargs["reason"] for mark in marks if mark.name == "skipif"]


def names(marks):
    return [mark.name for mark in marks if mark.name != "skipif"]


def test_llvm_is_there_and_gpus_are_not():
    assert reasons(features.requires_llvm.marks()) == []
    assert names(features.requires_llvm.marks()) == ["llvm"]
    assert "this machine has no CUDA that weft can use" in reasons(features.requires_cuda.marks())
    assert names(features.requires_cudnn.marks()) == ["gpu", "cuda", "cudnn"]


def test_every_feature_is_registered_under_its_name():
    known = {feature.name: feature for feature in Feature.all()}
    assert known["cuda"] is features.requires_cuda
    assert len(known) == len(Feature.all()) > 30
    for feature in Feature.all():
        assert set(feature.parent_features) <= set(known)
        assert feature.marks("optional")[-1].name == feature.name


def test_levels_of_support(made):
    feature = made("moon", "Moon", run_time_check=lambda: False, compile_time_check=lambda: True)
    assert reasons(feature.marks("compile-and-run")) == ["this machine has no Moon"]
    assert reasons(feature.marks("compile-only")) == []
    assert reasons(feature.marks("optional")) == []
    with pytest.raises(ValueError, match="expected one of compile-and-run, .* got 'always'"):
        feature.marks("always")


def test_reasons_of_parents_and_own_words(made):
    made("sun", run_time_check=lambda: "the sun is down")
    child = made("dial", parent_features="sun", compile_time_check=lambda: False)
    assert reasons(child.marks()) == ["weft cannot compile for dial", "the sun is down"]
    assert [item.name for item in child.lineage()] == ["sun", "dial"]


def test_build_options_of_tvm(made):
    assert reasons(made("on", cmake_flag="USE_LLVM").marks()) == []
    assert reasons(made("off", "Off", cmake_flag="USE_MOON").marks()) == [
        "weft has no Off support (USE_MOON)"
    ]


def test_a_target_kind_must_be_enabled(made, monkeypatch):
    feature = made("host", target_kind_enabled="llvm")
    assert reasons(feature.marks()) == []
    monkeypatch.setenv("TVM_TEST_TARGETS", "c")
    assert reasons(feature.marks()) == [
        "llvm is not among the targets that tests run on (TVM_TEST_TARGETS)"
    ]


def test_as_a_decorator(made):
    feature = made("off", run_time_check=lambda: False)

    @feature
    def bare():
        """A test."""

    @feature(support_required="optional")
    def optional():
        """A test."""

    assert [mark.name for mark in bare.pytestmark] == ["skipif", "off"]
    assert [mark.name for mark in optional.pytestmark] == ["off"]

    @Feature.require("off", "compile-only")
    def required():
        """A test."""

    assert [mark.name for mark in required.pytestmark] == ["off"]
    with pytest.raises(ValueError, match="Feature.require: expected one of .* got 'sky'"):
        Feature.require("sky")


def skips(decorator):
    """Whether a decorator skips what it decorates, and why."""

    def test():
        """A test."""

    marks = decorator(test).pytestmark
    found = [mark for mark in marks if mark.name == "skip" or (mark.name == "skipif" and any(
        mark.args
    ))]  # fmt: skip
    return [mark.kwargs["reason"] for mark in found]


def test_uses_of_a_gpu_never_skip():
    def test():
        """A test."""

    marks = features.uses_multi_gpu(features.uses_gpu(test)).pytestmark
    assert [mark.name for mark in marks] == ["gpu", "multi_gpu"]


def test_packages():
    assert skips(features.requires_package("numpy", "os.path")) == []
    assert skips(features.requires_package("numpy", "no_such", "no.such")) == [
        "needs the Python package no_such, no.such"
    ]


def test_versions():
    assert skips(features.requires_llvm_minimum_version(1)) == []
    (reason,) = skips(features.requires_llvm_minimum_version(999))
    assert reason.startswith("needs LLVM 999, this is LLVM ")
    assert skips(features.requires_cuda_compute_version(8, 6)) == ["needs CUDA compute 8.6"]
    assert skips(features.requires_nvcc_version(12)) == ["needs nvcc 12.0"]


def test_circumstances(monkeypatch):
    monkeypatch.delenv("WHEEL_TEST", raising=False)
    assert skips(features.skip_if_wheel_test) == []
    monkeypatch.setenv("WHEEL_TEST", "1")
    assert skips(features.skip_if_wheel_test) == ["WHEEL_TEST is set"]
    assert skips(features.skip_if_32bit(reason="narrow")) == []
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    assert skips(features.skip_if_32bit(reason="narrow")) == ["narrow"]
    monkeypatch.setattr(features, "SKIP_SLOW_TESTS", True)
    assert skips(features.slow) == ["SKIP_SLOW_TESTS is set"]
    assert skips(features.skip_if_no_reference_system) == ["needs the Corstone reference system"]
    assert not features.is_ampere_or_newer()


def test_features_of_the_processor(monkeypatch):
    monkeypatch.setattr(features, "host_features", lambda: {"avxvnni": True, "avx512f": True})
    assert features.requires_x86_vnni.run_reasons() == []
    assert features.requires_x86_avx512.run_reasons() == ["this machine has no AVX-512"]
    monkeypatch.setattr(features.platform, "machine", lambda: "arm64")
    assert features.requires_aarch64.run_reasons() == []
    assert features.requires_x86.run_reasons() == ["this machine has no x86 processor"]
