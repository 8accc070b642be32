"""Names that are missing: the nearest are looked for when somebody reads the text."""

from __future__ import annotations

import pickle

from weft.support.errors import IRAttributeError
from weft.support.missing import MissingNameError


def error_of(known):
    return MissingNameError("B has no split_", "split_", known, "B.")


def test_names_are_looked_for_when_the_text_is_read():
    asked = []
    error = error_of(lambda: asked.append(1) or ["split", "fuse"])
    assert not asked
    assert str(error) == "B has no split_; did you mean B.split?"
    assert str(error_of(lambda: ["fuse"])) == "B has no split_"


def test_another_process_gets_the_text():
    again = pickle.loads(pickle.dumps(error_of(lambda: ["split"])))
    assert type(again) is IRAttributeError
    assert str(again) == "B has no split_; did you mean B.split?"
