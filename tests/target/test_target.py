"""Target: text, JSON and dict forms, options with types, scopes, tags, host detection."""

from __future__ import annotations

import json
import pickle

import pytest

from weft.ir.structural import structural_equal
from weft.support.errors import CodegenError, TVMError
from weft.target import Target, list_tags, llvm_options, vector_bits


def test_text_json_and_dict_say_the_same():
    text = Target("llvm -mcpu=znver3 -num-cores=2 -mattr=+avx2,-avx512f")
    config = {"kind": "llvm", "mcpu": "znver3", "num-cores": 2, "mattr": ["+avx2", "-avx512f"]}
    assert text == Target(config) == Target(json.dumps(config))
    assert hash(text) == hash(Target(config))
    assert structural_equal(text, Target(config))
    assert text.export() == {"tag": "", "keys": ["cpu"], **config}


def test_both_dashes_and_separate_values_are_accepted():
    assert Target("llvm --num-cores=1") == Target("llvm -num-cores 1")


def test_parts():
    target = Target("llvm -mcpu=znver3 -num-cores=2 -keys=arm_cpu -device=arm_cpu")
    assert (target.kind.name, target.mcpu, target.num_cores) == ("llvm", "znver3", 2)
    assert target.keys == ["arm_cpu", "cpu"]
    assert target.attrs["num-cores"] == 2
    assert target.model == "unknown"


def test_text_form_is_read_back():
    target = Target("llvm -num-cores=4 -mcpu=skylake -mattr=+fma,+avx2")
    assert str(target) == "llvm -keys=cpu -mattr=+fma,+avx2 -mcpu=skylake -num-cores=4"
    assert Target(str(target)) == target
    assert pickle.loads(pickle.dumps(target)) == target


def test_host_is_attached():
    target = Target("cuda", host="llvm -num-cores=3")
    assert target.host.num_cores == 3
    assert target.with_host("llvm").host == Target("llvm")
    assert Target.canon_target_and_host("cuda", "llvm")[1] == Target("llvm")


def test_current_is_the_innermost_scope():
    assert Target.current() is None
    with Target("llvm"):
        with Target("llvm -num-cores=7"):
            assert Target.current().num_cores == 7
        assert Target.current().num_cores is None
    with pytest.raises(TVMError, match="expected a current target"):
        Target.current(allow_none=False)


def test_tags_are_known():
    target = Target("nvidia/geforce-rtx-3070")
    assert (target.kind.name, target.arch, target.tag) == (
        "cuda",
        "sm_86",
        "nvidia/geforce-rtx-3070",
    )
    assert "apple/m1-gpu" in list_tags()
    assert Target("cuda").max_num_threads == 1024


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("llvmm", "did you mean llvm"),
        ("llvm -mcpuu=x", "has no option 'mcpuu'; did you mean mcpu"),
        ("llvm -num-cores=many", "num-cores: expected int, got 'many'"),
        ("llvm mcpu=x", "expected an option such as -mcpu=native"),
        ("nvidia/geforce-9999", "target tag 'nvidia/geforce-9999' is not known"),
        ("{kind", "expected a target in JSON"),
        ("", "empty text"),
    ],
)
def test_wrong_targets_say_what_is_wrong(text, message):
    with pytest.raises(ValueError, match=message):
        Target(text)


def test_wrong_type():
    with pytest.raises(TypeError, match="expected a target as text"):
        Target(3)


def test_the_host_is_detected():
    options = llvm_options()
    assert options.triple
    assert options.cpu
    assert "+" in options.features
    assert options == llvm_options("llvm -mcpu=native")
    assert vector_bits() in (128, 256, 512)


def test_an_explicit_processor_has_its_own_features_only():
    options = llvm_options("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3 -mattr=+avx512f")
    assert (options.cpu, options.features, options.vector_width) == ("x86-64-v3", "+avx512f", 512)
    assert vector_bits("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v3") == 256
    assert vector_bits("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2") == 128
    assert llvm_options("llvm -vector-width=256").vector_width == 256


def test_targets_that_have_no_code_generator_are_refused():
    with pytest.raises(CodegenError, match="target kind 'cuda' is not available; expected 'llvm'"):
        llvm_options("cuda")
    with pytest.raises(CodegenError, match="no code for GPUs; with target='llvm' loops"):
        llvm_options("cuda")
    with pytest.raises(ValueError, match="'znver33' is no x86-64 processor; did you mean znver3"):
        llvm_options("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver33")
    with pytest.raises(ValueError, match="expected features such as"):
        llvm_options("llvm -mattr=avx2")


@pytest.mark.parametrize("count", [0, -2])
def test_a_target_has_at_least_one_core(count):
    with pytest.raises(ValueError, match=f"num-cores: expected at least 1, got {count}"):
        Target({"kind": "llvm", "num-cores": count})
