"""The conformance suite: what every backend computes as the interpreter does.

A group of cases is one program on each platform. The quick half, in make test, is every third case,
each group on two of the platforms.
"""

from __future__ import annotations

import pytest

from tests.backends.batch import check
from tests.backends.cases import GROUPS
from tests.backends.platforms import (
    AARCH64,
    HASWELL,
    NATIVE,
    WASM,
    WASM_RELAXED,
    platform_params,
)

pytestmark = pytest.mark.sampled(2, by=lambda parameters: parameters["group"])

PLATFORMS = platform_params(NATIVE, HASWELL, AARCH64, WASM, WASM_RELAXED)
QUICK = 3
"""Of so many cases the quick half takes one."""


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("group", GROUPS)
def test_a_third(group, platform, tmp_path):
    check([*GROUPS[group]()][::QUICK], platform, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("group", GROUPS)
def test_the_rest(group, platform, tmp_path):
    cases = [case for number, case in enumerate(GROUPS[group]()) if number % QUICK]
    check(cases, platform, tmp_path)
