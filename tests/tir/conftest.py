"""``becomes``: a pass makes ``expected`` of ``before``, and both compute the same."""

from tests.lib.becomes import becomes  # noqa: F401 - a fixture
