"""The page of a search: which trials count, how fast all is so far, what it draws and says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from weft.cli.main import main
from weft.driver.tuning.journal import Entry, Journal
from weft.support.errors import IRValueError
from weft.viz.search import draw_search, gains, search_page, searches_of


@pytest.fixture
def path(tmp_path):
    """Trials of two kernels: one wins by another tile, one gains nothing; one trial failed."""
    journal = Journal(tmp_path / "trials.jsonl", "here")
    dense, norm = {"name": "dense", "calls": 2}, {"name": "<norm>", "calls": 1}
    journal.add(Entry("d", {}, 100.0, **dense))
    journal.add(Entry("n", {}, 50.0, **norm))
    journal.add(Entry("d", {"tile": "8"}, 50.0, **dense))
    journal.add(Entry("d", {"tile": "9"}, None, **dense))
    journal.add(Entry("n", {"rows": "4"}, 60.0, **norm))
    journal.add(Entry("d", {"tile": "8"}, 55.0, **dense, is_winner=True))
    return tmp_path / "trials.jsonl"


def test_kernels_are_rows_with_what_won(path):
    dense, norm = searches_of(path)
    assert dense.row() == ["dense", "2", "4", "1", "100.0", "50.0", "2.000", "tile: 8"]
    assert norm.row() == ["<norm>", "1", "2", "0", "50.0", "50.0", "1.000", "the default"]


def test_the_gain_grows_with_the_fastest_trials(path):
    line = gains(searches_of(path))
    assert [number for number, _ in line] == [0, 1, 2, 3, 4, 5]
    assert [round(gain, 3) for _, gain in line] == [1.0, 1.0, 1.667, 1.667, 1.667, 1.667]


def test_trials_for_another_place_are_left_out(path):
    Journal(path, "elsewhere").add(Entry("d", {}, None, "dense"))
    [only] = searches_of(path)
    assert only.row() == ["dense", "1", "1", "1", "-", "-", "-", "the default"]
    assert gains([only]) == [(0, 1.0)]
    ElementTree.fromstring(draw_search([only]).svg)


def test_the_drawing_has_a_mark_for_each_trial(path):
    svg = ElementTree.fromstring(draw_search(searches_of(path)).svg)
    space = "{http://www.w3.org/2000/svg}"
    assert len(svg.findall(f"{space}circle")) == 5
    [cross] = svg.findall(f"{space}path")
    assert cross.find(f"{space}title").text == "dense: failed; tile: 9"


def test_names_in_a_file_are_no_html(path):
    page = search_page("<b>", searches_of(path))
    assert "<norm>" not in page
    assert "<td>&lt;norm&gt;</td>" in page
    assert "<script" not in page
    assert "6 trials of 2 kernels; 1 won" in page


def test_a_file_without_trials_is_an_error(tmp_path):
    (tmp_path / "empty.jsonl").write_text("{}\n[]\n")
    with pytest.raises(IRValueError, match=r"empty.jsonl: expected trials that .* found none"):
        searches_of(tmp_path / "empty.jsonl")
    with pytest.raises(IRValueError, match=r"missing.jsonl: cannot be read: No such file"):
        searches_of(tmp_path / "missing.jsonl")


def test_the_command_writes_the_page(path, tmp_path, capsys):
    page = tmp_path / "search.html"
    assert main(["viz", str(path), "-o", str(page)]) == 0
    assert "tile: 8" in capsys.readouterr().out
    assert page.read_text().startswith("<!doctype html>")
    assert main(["viz", str(path), "--json", str(tmp_path / "data.json")]) != 0
    assert "a search has a page only; give -o page.html" in capsys.readouterr().err
