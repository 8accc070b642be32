"""Models with text: what moves it, what compares it, what computes with it."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import weft
from tests.lib.onnx_models import info, node
from weft.runtime.ngrams import Pool
from weft.runtime.texts import TextTable

pytestmark = pytest.mark.onnx
ML = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]


def words(*items):
    return np.array(items, object)


def text(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.STRING, shape)


def model(nodes, inputs, outputs, **constants):
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(nodes, "graph", inputs, results, tensors)
    imports = [*ML, helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def compiled(*args, **constants):
    return weft.compile(model(*args, **constants), cache=False)


def test_text_goes_through_what_moves_it():
    net = compiled(
        [node("Transpose", "x", "t", perm=[1, 0]), node("Gather", "t i", "g", axis=0),
         node("Concat", "g y", "c", axis=0), node("Reshape", "c s", "z"), node("Shape", "x", "n")],
        [text("x", ["n", 2]), text("y", [1, "n"])], ["z", "n"],
        i=np.array([1, 0]), s=np.array([-1]),
    )  # fmt: skip
    x, y = words(["a", "ä"], ["", "d"], ["a", "f"]), words(["p", "a", "r"])[None]
    z, n = net(x, y[0])
    assert z.tolist() == [*x.T[[1, 0]].ravel(), *y.ravel()]
    assert np.asarray(n).tolist() == [3, 2]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_equal_texts_are_compared_without_a_function(rows):
    proto = model([node("Equal", "x k", "e"), node("Where", "e x y", "z")],
                  [text("x", ["n"]), text("y", ["n"])], ["e", "z"], k=words("red"))  # fmt: skip
    x, y = words(*["red", "blue"] * 3)[:rows], words(*"uvwuvw")[:rows]
    equal, z = weft.compile(proto, cache=False)(x, y)
    assert np.asarray(equal).tolist() == (x == "red").tolist()
    assert z.tolist() == [a if a == "red" else b for a, b in zip(x, y, strict=True)]
    called = [item for item in str(weft.relax.frontend.onnx.from_onnx(proto).script()).split('"')
              if item.startswith("weft.text")]  # fmt: skip
    assert sorted(set(called)) == ["weft.text.places", "weft.text.table", "weft.text.texts"]


def test_an_input_takes_arrays_of_objects_of_text_and_of_bytes_and_lists():
    net = compiled([node("StringConcat", "x x", "y")], [text("x", ["n"])], ["y"])
    for given in (words("a", "ü"), np.array(["a", "ü"]), ["a", "ü"],
                  np.array([b"a", "ü".encode()])):  # fmt: skip
        assert net(given).tolist() == ["aa", "üü"]


WRONG = [
    (words("a", None), r"input x: expected text, got None at \[1\]"),
    (np.array([1.0, 2.0]), "input x: expected an array of text, got one of float64"),
    (words(["a"], ["b"]), r"input x: expected text of shape \(2,\), got \(2, 1\)"),
    (words("a", "b", "c"), r"input x: expected text of shape \(2,\), got \(3,\)"),
    ([["a"], ["b", "c"]], "input x: expected an array of text: .*inhomogeneous"),
    ({"x": 1}, r"input x: expected text of shape \(2,\), got \(\)"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_wrong_inputs(given, message):
    net = compiled([node("Identity", "x", "y")], [text("x", [2])], ["y"])
    with pytest.raises(weft.TVMError, match=message):
        net(given)


def test_extents_of_text_that_differ_name_the_input():
    net = compiled([node("StringConcat", "x y", "z")], [text("x", ["n"]), text("y", ["n"])], ["z"])
    with pytest.raises(weft.TVMError, match=r"axis 0 of y \(2\) have one name, 'n'"):
        net(words("a"), words("b", "c"))


def test_numbers_where_text_is_needed():
    with pytest.raises(weft.TVMError, match="StringConcat.*text is not computed|expected text"):
        compiled([node("StringConcat", "x x", "y"), node("Identity", "t", "u")],
                 [info("x", "float32", [2]), text("t", [1])], ["y", "u"])  # fmt: skip


def test_an_operator_of_numbers_refuses_text():
    with pytest.raises(weft.TVMError, match="text and dicts can only pass through, be compared"):
        compiled([node("TopK", "x k", "y i")], [text("x", [2])], ["y", "i"], k=np.array([1]))


def test_numbers_and_text():
    given = np.array([1.5, -2.0, np.inf, np.nan, 1e-9], "float32")
    net = compiled([node("Cast", "x", "t", to=8), node("Cast", "t", "y", to=1)],
                   [info("x", "float32", ["n"])], ["t", "y"])  # fmt: skip
    spelled, back = net(given)
    assert spelled.tolist() == ["1.5", "-2.0", "INF", "NaN", "1e-09"]
    np.testing.assert_array_equal(back, given)
    whole = compiled([node("Cast", "x", "y", to=7)], [text("x", ["n"])], ["y"])
    assert whole(words("12", "-7")).tolist() == [12, -7]
    with pytest.raises(weft.TVMError, match="Cast: expected a number of int64, got 'seven'"):
        whole(words("seven"))


def test_a_choice_between_texts_and_a_loop_that_adds_to_one():
    branches = {
        name: helper.make_graph([node("StringConcat", inputs, name)], name, [], [text(name, ["n"])])
        for name, inputs in (("ab", "x y"), ("ba", "y x"))
    }
    nodes = [helper.make_node("If", ["flag"], ["z"], then_branch=branches["ab"],
                              else_branch=branches["ba"])]  # fmt: skip
    net = compiled(nodes, [info("flag", "bool", []), text("x", ["n"]), text("y", ["n"])], ["z"])
    assert net(np.array(True), words("a"), words("b")).tolist() == ["ab"]
    assert net(np.array(False), words("a"), words("b")).tolist() == ["ba"]


def test_text_columns_of_a_table():
    encoder = helper.make_node("OneHotEncoder", ["x"], ["h"], domain="ai.onnx.ml",
                               cats_strings=["red", "blue"], zeros=1)  # fmt: skip
    mapper = helper.make_node("CategoryMapper", ["x"], ["m"], domain="ai.onnx.ml",
                              cats_strings=["blue", "red"], cats_int64s=[5, 7])  # fmt: skip
    names = helper.make_node("CategoryMapper", ["m"], ["b"], domain="ai.onnx.ml",
                             cats_strings=["blue", "red"], cats_int64s=[5, 7])  # fmt: skip
    net = compiled([encoder, mapper, names], [text("x", ["n", 1])], ["h", "m", "b"])
    hot, numbers, back = net(words("blue", "green", "red").reshape(3, 1))
    assert np.asarray(hot).reshape(3, 2).tolist() == [[0, 1], [0, 0], [1, 0]]
    assert np.asarray(numbers).ravel().tolist() == [5, -1, 7]
    assert back.ravel().tolist() == ["blue", "_Unused", "red"]


def test_texts_of_unknown_extents_are_broadcast():
    net = compiled([node("StringConcat", "x z", "y")], [text("x", ["n"]), text("z", ["m", 1])],
                   ["y"])  # fmt: skip
    rows = np.array([["c"], ["d"], ["e"]], object)
    assert net(words("a", "b"), rows).tolist() == [["ac", "bc"], ["ad", "bd"], ["ae", "be"]]
    net = compiled([node("StringConcat", "x z", "y")], [text("x", ["n"]), text("z", ["m"])], ["y"])
    assert net(words("a", "b"), words("c")).tolist() == ["ac", "bc"]
    with pytest.raises(weft.TVMError, match=r"shapes that broadcast, got \(2,\) and \(3,\)"):
        net(words("a", "b"), words("c", "d", "e"))


TOKENS = [
    ({"tokenexp": "[a-z]+", "mark": 0, "mincharnum": 2}, [["the", "cat"], ["ab", "#"]]),
    ({"separators": [" ", "-"], "mark": 0, "mincharnum": 1},
     [["the", "cat", "9"], ["ab", "#", "#"]]),
    ({"separators": [""], "mark": 1, "mincharnum": 1},
     [["\x02", *"the cat-9", "\x03"], ["\x02", *"ab", "\x03", *["#"] * 7]]),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "tokens"), TOKENS, ids=["match", "between", "letters"])
def test_tokens(attributes, tokens):
    cut = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", pad_value="#",
                           **attributes)  # fmt: skip
    net = compiled([cut], [text("x", ["n"])], ["y"])
    assert net(words("the cat-9", "ab")).tolist() == tokens


def test_a_wrong_pattern_is_an_error_of_the_import():
    with pytest.raises(weft.TVMError, match=r"pattern: expected a regular expression, got '\('"):
        compiled([node("RegexFullMatch", "x", "y", pattern="(")], [text("x", [1])], ["y"])


@pytest.mark.parametrize(
    "pattern",
    [r"www\.[\w.-]+\.\bcom\b", r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
     "[a-z]+(?:-[a-z]+)*", r"(\w+\s)*", r"(\d{1,3}\.){3}\d{1,3}", "(ab|cd)+", "(?:foo|far)*c",
     r"(?:[^,]*,)*"],
)  # fmt: skip
def test_patterns_that_take_bounded_time(pattern):
    compiled([node("RegexFullMatch", "x", "y", pattern=pattern)], [text("x", [1])], ["y"])


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+", "(a|a)*", "(a*)*b", r"(\w+\s?)*", "(.*){1,32000}", "(a|ab)*", "(,a*a*)*",
     "(,(a*)?)*", "(,a*.b*)*", "(?i:(a[A]+)*)", "(?:(?:a?){20}){20}", "(a|)*", "(x+x+)+y"],
)  # fmt: skip
def test_patterns_that_may_take_exponential_time_are_refused(pattern):
    with pytest.raises(weft.TVMError, match="repeats what may match one text in several ways"):
        compiled([node("RegexFullMatch", "x", "y", pattern=pattern)], [text("x", [1])], ["y"])


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [(r"(a)\1", "a back-reference"), ("(?=a)b", "a lookaround"), ("(?<!a)b", "negative look"),
     ("(?>a)", "an atomic group"), ("a*+", "a possessive"), ("(a)?(?(1)b)", "a condition")],
)  # fmt: skip
def test_what_re2_does_not_have_is_refused(pattern, construct):
    with pytest.raises(weft.TVMError, match=f"has {construct}|has a {construct}"):
        compiled([node("RegexFullMatch", "x", "y", pattern=pattern)], [text("x", [1])], ["y"])


def test_a_saved_model_runs_where_only_the_runtime_is_imported(tmp_path):
    net = compiled([node("StringNormalizer", "x", "y", case_change_action="UPPER",
                         stopwords=["and"])], [text("x", ["n"])], ["y"])  # fmt: skip
    net.save(tmp_path / "net.weft")
    program = f"""
import sys, weft.runtime
net = weft.runtime.load({str(tmp_path / "net.weft")!r})
print(net(["salt", "and", "pepper"]).tolist(), "onnx" in sys.modules, "llvmlite" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "['SALT', 'PEPPER'] False False", done.stderr


def test_a_table_gives_equal_texts_one_place():
    table = TextTable(("b", "a"))
    assert [table.place(item) for item in ("a", "b", "c", "c", "d", "a")] == [1, 0, 2, 2, 3, 1]
    assert [table.text(place) for place in range(4)] == ["b", "a", "c", "d"]
    assert TextTable(("b", "a")).place("d") == 2


@pytest.mark.parametrize("seed", range(30))
def test_ngrams_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    size, step, letters = int(rng.integers(1, 5)), int(rng.integers(1, 4)), int(rng.integers(1, 5))
    grams = rng.integers(0, letters, (int(rng.integers(1, 9)), size))
    columns = rng.integers(0, 6, len(grams))
    rows = rng.integers(0, letters + 1, (int(rng.integers(0, 4)), int(rng.integers(0, 12))))
    totals, wanted = np.zeros((len(rows), 6)), np.zeros((len(rows), 6))
    Pool(grams.tolist(), columns.tolist()).add(totals, rows, step)
    starts = max(rows.shape[1] - (size - 1) * step, 0)
    for row, start, gram in itertools.product(range(len(rows)), range(starts), range(len(grams))):
        window = rows[row, start : start + (size - 1) * step + 1 : step]
        wanted[row, columns[gram]] += np.array_equal(window, grams[gram])
    np.testing.assert_array_equal(totals, wanted)


def test_a_number_chooses_a_word_of_the_model():
    """Gather reads a table of words that is an initializer, as a model of letters to sounds has."""
    places = info("places", "int64", ["n", 2])
    nodes = [node("Gather", "sounds places", "chosen"), node("Reshape", "chosen all", "flat")]
    sounds = words("ah", "oh", "ee")
    constants = {"sounds": sounds, "all": np.array([-1])}
    choose = compiled(nodes, [places], ["chosen", "flat"], **constants)
    chosen, flat = choose(np.array([[2, 0], [1, -1]]))
    assert chosen.tolist() == [["ee", "ah"], ["oh", "ee"]]
    assert flat.tolist() == ["ee", "ah", "oh", "ee"]


def test_a_number_chooses_a_word_where_text_comes_in_too():
    nodes = [node("Gather", "sounds places", "chosen"), node("Concat", "chosen given", "y", axis=0)]
    inputs = [info("places", "int64", ["n"]), text("given", ["m"])]
    join = compiled(nodes, inputs, ["y"], sounds=words("ah", "oh"))
    assert join(np.array([1, 0]), words("new", "oh")).tolist() == ["oh", "ah", "new", "oh"]
