"""``becomes``, as the passes of weft.tir.transform have it."""

from tests.tir.transform.conftest import becomes  # noqa: F401 - a fixture
