"""Seeds in processes: one that dies or hangs is named, and the next goes on."""

import pytest

pytest.importorskip("torch")

from tests.lib import network_batches

WORKER = """
import json, os, sys, time
first, count = int(sys.argv[1]), int(sys.argv[2])
for seed in range(first, first + count):
    print("a library says something", flush=True)
    if seed == 2:
        os.abort()
    if seed == 7:
        time.sleep(3600)
    status = {"status": "right", "rules": {"accurate": 3, "tie": 1}}
    if seed == 5:
        status = {"status": "wrong", "message": "off by one", "nodes": ["a = Add(x, y)"]}
    if seed == 6:
        status = {"status": "refused", "message": "no such thing"}
    ways = {"torch": status}
    print(json.dumps({"seed": seed, "operators": {"Add": 1}, "dtypes": ["bool"], "ways": ways}),
          flush=True)
"""


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    path = tmp_path_factory.mktemp("worker") / "worker.py"
    path.write_text(WORKER, encoding="utf-8")
    return (str(path),)


@pytest.fixture(scope="module")
def found(worker):
    return list(network_batches.outcomes(0, 7, worker=worker))


def test_every_seed_has_an_outcome(found):
    assert [one["seed"] for one in found] == list(range(7))


def test_a_process_that_dies_is_named(found):
    text = network_batches.failures(found)[0]
    assert text == "seed 2, process: crashed: the process ended with status -6"


def test_a_process_that_hangs_is_named(worker):
    found = list(network_batches.outcomes(7, 1, worker=worker, seconds=1))
    assert network_batches.failures(found) == ["seed 7, process: crashed: nothing for 1 seconds"]


def test_wrong_answers_and_unknown_refusals_fail(found):
    texts = network_batches.failures(found)
    assert "seed 5, torch: wrong: off by one\n  a = Add(x, y)" in texts[1]
    assert "seed 6, torch: refused: no such thing" in texts[2]


def test_a_known_refusal_is_counted(found, monkeypatch):
    monkeypatch.setattr(network_batches, "REFUSALS", {"no such": "for a reason"})
    assert len(network_batches.failures(found)) == 2
    assert "1 refused: no such thing" in network_batches.table(found)


def test_the_table_counts(found):
    text = network_batches.table(found)
    assert text.startswith("7 networks, 5 judged; 1 operators, 6 nodes; bool")
    assert "torch: 4 right, 1 wrong, 1 refused" in text
    assert "4 tie" in text
    assert "process: 1 crashed" in text


def test_no_seed_begins_after_the_end():
    assert list(network_batches.outcomes(0, 3, end=0.0)) == []
