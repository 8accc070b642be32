"""Which targets tests run on; what a test sees of it is in test_plugin_parts.py."""

from __future__ import annotations

import logging

import pytest

from weft.target.target import Target
from weft.testing import targets


@pytest.fixture
def wanted(monkeypatch):
    return lambda text: monkeypatch.setenv("TVM_TEST_TARGETS", text)


@pytest.fixture(autouse=True)
def _no_wish(monkeypatch):
    monkeypatch.delenv("TVM_TEST_TARGETS", raising=False)


def test_the_default_is_this_cpu():
    assert targets.test_targets() == ["llvm"]
    ((text, device),) = targets.enabled_targets()
    assert text == "llvm"
    assert device.device_type == 1
    assert device.exist


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("llvm", "llvm"),
        ("llvm -mcpu=x86-64-v3 -num-cores=2", "llvm"),
        ('{"kind": "llvm", "mcpu": "x86-64-v3"}', "llvm"),
        (Target("llvm -num-cores=2"), "llvm"),
        ("cuda", "cuda"),
    ],
)
def test_kinds(given, kind):
    assert targets.kind_of(given) == kind


def test_texts():
    assert targets.target_text("llvm -mcpu=x86-64-v3") == "llvm -mcpu=x86-64-v3"
    assert targets.target_text(Target("llvm -num-cores=2")) == str(Target("llvm -num-cores=2"))


def test_the_environment_chooses(wanted):
    wanted(" llvm ; cuda;llvm;; llvm -num-cores=2 ")
    assert targets.test_targets() == ["llvm", "cuda", "llvm -num-cores=2"]
    assert [text for text, _ in targets.enabled_targets()] == ["llvm", "llvm -num-cores=2"]


def test_a_wish_that_cannot_be_met_is_replaced_and_logged(wanted, caplog):
    wanted("cuda;vulkan")
    with caplog.at_level(logging.WARNING, logger="weft"):
        assert targets.test_targets() == ["llvm"]
    assert "TVM_TEST_TARGETS=cuda;vulkan" in caplog.text
    assert "testing on llvm" in caplog.text


def test_what_can_run_and_what_is_enabled(wanted):
    assert targets.can_run("llvm")
    assert not targets.can_run("cuda")
    assert targets.device_enabled("llvm -num-cores=2")
    assert not targets.device_enabled("cuda")
    wanted("c")
    assert not targets.device_enabled("llvm")


def marked(**marks):
    return lambda name: [marks[name]] if name in marks else []


def params(**marks):
    return targets.params_of(marked(**marks), lambda target: [])


def test_params_default_to_the_enabled_targets():
    (param,) = params()
    assert (param.values, param.id, list(param.marks)) == (("llvm",), "llvm", [])


def test_params_follow_the_marks():
    found = params(
        weft_targets=pytest.mark.weft_targets("llvm", "cuda", "llvm -num-cores=2", "metal").mark,
        weft_exclude_targets=pytest.mark.weft_exclude_targets("metal -x").mark,
        weft_known_failing_targets=pytest.mark.weft_known_failing_targets("llvm").mark,
    )
    assert [param.id for param in found] == ["llvm", "cuda", "llvm -num-cores=2"]
    assert [[mark.name for mark in param.marks] for param in found] == [["xfail"], [], ["xfail"]]
    assert found[0].marks[0].kwargs["reason"] == "known to fail on llvm"


def test_params_carry_what_a_target_requires():
    (param,) = targets.params_of(marked(), lambda target: [pytest.mark.skip(reason=f"no {target}")])
    assert param.marks[0].kwargs["reason"] == "no llvm"


def test_decorators_leave_marks():
    def plain(target, dev):
        """A test."""

    assert targets.parametrize_targets(plain).pytestmark[0].args == ()

    @targets.parametrize_targets("llvm", "cuda")
    @targets.exclude_targets("cuda")
    @targets.known_failing_targets("metal")
    def several(target, dev):
        """A test."""

    assert [(mark.name, mark.args) for mark in several.pytestmark] == [
        ("weft_known_failing_targets", ("metal",)),
        ("weft_exclude_targets", ("cuda",)),
        ("weft_targets", ("llvm", "cuda")),
    ]
