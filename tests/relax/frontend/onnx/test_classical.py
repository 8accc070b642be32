"""ai.onnx.ml beside ONNX Runtime: trees, linear models, support vectors, features, labels."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper

import weft
from tests.lib.onnx_models import info, model, node, run, uniform
from weft.relax.frontend.onnx import from_onnx
from weft.relax.frontend.onnx.errors import OnnxNodeError

onnxruntime = pytest.importorskip("onnxruntime", reason="its results are what is compared with")
pytestmark = [pytest.mark.sampled(3), pytest.mark.onnx]


def classical(nodes, inputs, outputs, version=3, constants=None):
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    return model(nodes, inputs, outputs, constants=constants, imports=imports)


def ml(name, inputs, outputs, **attributes):
    return node(name, inputs, outputs, domain="ai.onnx.ml", **attributes)


def check(proto, *arrays, rtol=1e-5, atol=1e-6):
    """Compare with ONNX Runtime, at the sizes of the arrays and of their first row."""
    typed = type(proto).FromString(proto.SerializeToString())
    session = onnxruntime.InferenceSession(typed.SerializeToString())
    names = [item.name for item in session.get_inputs()]
    compiled = weft.compile(proto, cache=False)
    for given in (arrays, [array[:1] for array in arrays]):
        wanted = session.run(None, dict(zip(names, given, strict=True)))
        made = compiled(*given)
        for mine, its in zip(made if len(wanted) > 1 else [made], wanted, strict=True):
            if isinstance(its, list):
                assert [list(row) for row in mine] == [list(row) for row in its]
                mine, its = ([list(row.values()) for row in rows] for rows in (mine, its))
            its = np.asarray(its)
            if its.dtype.kind in "OU":
                assert np.asarray(mine).tolist() == its.tolist()
            else:
                assert np.shape(mine) == its.shape
                np.testing.assert_allclose(mine, its, rtol=rtol, atol=atol)


X = uniform(7, 3, seed=3)
ROWS = info("x", shape=["n", 3])

FEATURES = {
    "Binarizer": ml("Binarizer", "x", "y", threshold=0.25),
    "Scaler": ml("Scaler", "x", "y", offset=[0.5, 0.0, -1.0], scale=[2.0, 1.0, 0.5]),
    "Scaler of one number": ml("Scaler", "x", "y", offset=[0.5], scale=[2.0]),
    "Normalizer of MAX": ml("Normalizer", "x", "y", norm="MAX"),
    "Normalizer of L1": ml("Normalizer", "x", "y", norm="L1"),
    "Normalizer of L2": ml("Normalizer", "x", "y", norm="L2"),
    "Imputer": ml("Imputer", "x", "y", imputed_value_floats=[1.0, 2.0, 3.0],
                  replaced_value_float=float("nan")),
    "Imputer of one number": ml("Imputer", "x", "y", imputed_value_floats=[9.0],
                                replaced_value_float=0.0),
    "LinearRegressor": ml("LinearRegressor", "x", "y", coefficients=[1.0, 2.0, 3.0, -1.0, 0.5, 2.0],
                          intercepts=[0.5, -2.0], targets=2),
    "LinearRegressor without intercepts": ml("LinearRegressor", "x", "y",
                                             coefficients=[1.0, 2.0, 3.0], targets=1),
}  # fmt: skip


@pytest.mark.parametrize("case", FEATURES)
def test_features(case):
    x = X.copy()
    x[2] = 0
    if "Imputer" in case and "one" not in case:
        x[1, 2] = x[4, 0] = np.nan
    check(classical([FEATURES[case]], [ROWS], ["y"]), x)


def test_features_of_several_inputs_stand_side_by_side():
    proto = classical([ml("FeatureVectorizer", "x z", "y", inputdimensions=[3, 2])],
                      [ROWS, info("z", shape=["n", 2])], ["y"])  # fmt: skip
    check(proto, X, uniform(7, 2, seed=9))


def test_elements_at_places_of_the_last_axis():
    proto = classical([ml("ArrayFeatureExtractor", "x i", "y")], [ROWS], ["y"],
                      constants={"i": np.array([2, 0, 2])})  # fmt: skip
    check(proto, X)


def test_categories_become_rows_of_zeros_and_ones():
    proto = classical([ml("OneHotEncoder", "c", "y", cats_int64s=[3, 7, 5])],
                      [info("c", "int64", ["n", 2])], ["y"])  # fmt: skip
    check(proto, np.array([[3, 5], [7, 7], [0, 3], [5, 9]]))


ENCODERS = [
    ({"keys_int64s": [1, 2, 2], "values_floats": [0.5, 1.5, 9.0], "default_float": -1.0}, "int64"),
    ({"keys_floats": [1.0, float("nan")], "values_int64s": [4, 6], "default_int64": 9}, "float32"),
    ({"keys_int64s": [0, 1, 2], "values_strings": ["ant", "bee", "cow"]}, "int64"),
]


@pytest.mark.parametrize(("attributes", "dtype"), ENCODERS)
def test_labels_are_encoded(attributes, dtype):
    version = 4 if dtype == "float32" else 2  # a key of NaN is one from then on
    proto = classical([ml("LabelEncoder", "c", "y", **attributes)],
                      [info("c", dtype, ["n"])], ["y"], version=version)  # fmt: skip
    values = [1, 2, 0, 5] if dtype == "int64" else [1, np.nan, 0, 5]
    check(proto, np.array(values, dtype))


def test_a_text_is_encoded_once_more():
    names = ["ant", "bee"]
    nodes = [ml("LabelEncoder", "c", "t", keys_int64s=[0, 1], values_strings=names),
             ml("LabelEncoder", "t", "y", keys_strings=names, values_int64s=[10, 20])]  # fmt: skip
    check(classical(nodes, [info("c", "int64", ["n"])], ["y"], version=2), np.array([1, 0, 3]))


# Trees


def stumps(leaves, **attributes):
    """Two trees over x[0] and x[1]; ``leaves`` are (ids, weights) of the four leaves."""
    given = {
        "nodes_treeids": [0, 0, 0, 1, 1, 1], "nodes_nodeids": [0, 1, 2, 0, 1, 2],
        "nodes_featureids": [0, 0, 0, 1, 0, 0], "nodes_values": [0.1, 0, 0, -0.2, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0, 2, 0, 0], "nodes_falsenodeids": [2, 0, 0, 1, 0, 0],
    }  # fmt: skip
    kind = "class" if any("label" in name for name in attributes) else "target"
    rows = [(tree, leaf, i, w) for (tree, leaf), (ids, weights) in
            zip([(0, 1), (0, 2), (1, 1), (1, 2)], leaves, strict=True)
            for i, w in zip(ids, weights, strict=True)]  # fmt: skip
    for name, values in zip(("treeids", "nodeids", "ids", "weights"), zip(*rows, strict=True),
                            strict=True):  # fmt: skip
        given[f"{kind}_{name}"] = list(values)
    return given | attributes


ONE = [([0], [0.3]), ([0], [0.6]), ([0], [0.1]), ([0], [0.25])]
MIXED = [([0], [-0.3]), ([0], [0.6]), ([0], [0.1]), ([0], [-0.25])]
SECOND = [([1], [-0.3]), ([1], [0.6]), ([1], [0.1]), ([1], [-0.25])]
THREE = [([0, 1, 2], [0.2, 0.3, 0.5]), ([0, 1, 2], [0.6, 0.3, 0.1]), ([0, 1, 2], [0.1, 0.8, 0.1]),
         ([0, 1, 2], [0.0, 0.4, 0.6])]  # fmt: skip
TWO_TARGETS = [([0, 1], [0.2, 0.3]), ([0], [0.6]), ([1], [0.8]), ([0, 1], [0.1, -0.4])]


LEAVES = {"one": ONE, "mixed": MIXED, "second": SECOND, "three": THREE}


@pytest.mark.parametrize(
    ("leaves", "transform"),
    [("one", "NONE"), ("one", "LOGISTIC"), ("mixed", "NONE"), ("mixed", "SOFTMAX"),
     ("second", "LOGISTIC"), ("second", "SOFTMAX_ZERO"), ("three", "NONE"), ("three", "SOFTMAX"),
     ("three", "SOFTMAX_ZERO"), ("three", "PROBIT")],
)  # fmt: skip
def test_classes_of_trees(leaves, transform):
    names = [5, 7] if leaves != "three" else [5, 7, 9]
    call = ml("TreeEnsembleClassifier", "x", "label scores",
              **stumps(LEAVES[leaves], classlabels_int64s=names,
                       post_transform=transform))  # fmt: skip
    check(classical([call], [ROWS], ["label", "scores"]), X)


@pytest.mark.parametrize("base", [[0.4], [0.1, 0.2, -0.3]])
def test_classes_of_trees_with_base_values(base):
    leaves, names = (MIXED, [5, 7]) if len(base) == 1 else (THREE, [5, 7, 9])
    call = ml("TreeEnsembleClassifier", "x", "label scores",
              **stumps(leaves, classlabels_int64s=names, base_values=base))  # fmt: skip
    check(classical([call], [ROWS], ["label", "scores"]), X)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_targets_of_trees(aggregate):
    call = ml("TreeEnsembleRegressor", "x", "y",
              **stumps(TWO_TARGETS, n_targets=2, aggregate_function=aggregate,
                       base_values=[0.5, -0.5]))  # fmt: skip
    check(classical([call], [ROWS], ["y"]), X)


TWICE = [([0, 0], [0.2, 0.3]), ([0], [0.6]), ([0, 0, 0], [0.1, 0.8, 0.8]), ([0], [-0.4])]


@pytest.mark.parametrize("count", [1, 2])
def test_scores_of_a_leaf_that_stand_more_than_once(count):
    """Of one target the first one counts, as skl2onnx relies on; of several all are added."""
    given = stumps(TWICE, n_targets=count)
    check(classical([ml("TreeEnsembleRegressor", "x", "y", **given)], [ROWS], ["y"]), X)


@pytest.mark.parametrize(
    ("mode", "tracks"),
    [("LEQ", 1), ("LT", 0), ("GTE", 1), ("GT", 0), ("EQ", 1), ("NEQ", 0), ("LEQ", 0)],
)
def test_branches_compare_and_send_missing_values_as_told(mode, tracks):
    given = stumps([([0], [1.0]), ([0], [2.0]), ([0], [4.0]), ([0], [8.0])], n_targets=1)
    given["nodes_modes"] = [f"BRANCH_{mode}", "LEAF", "LEAF"] * 2
    given["nodes_missing_value_tracks_true"] = [tracks, 0, 0, 0, 0, 0]
    x = np.array([[0.1, -0.2, 0], [0, 0, 0], [1, -1, 0], [np.nan, 1, 0], [1, np.nan, 0]], "float32")
    check(classical([ml("TreeEnsembleRegressor", "x", "y", **given)], [ROWS], ["y"]), x)


def test_trees_whose_numbers_have_gaps_and_no_order():
    """They are the trees whose nodes stand in order, which ONNX Runtime does not look at."""
    given = stumps(TWO_TARGETS, n_targets=2)
    ordered = classical([ml("TreeEnsembleRegressor", "x", "y", **given)], [ROWS], ["y"])
    for name in given:
        if name.endswith("treeids"):
            given[name] = [(-3, 1 << 40)[tree] for tree in given[name]]
        elif name.endswith("nodeids"):
            given[name] = [(1 << 41, -7, 5)[place] for place in given[name]]
        if name.startswith("nodes_"):
            given[name] = [given[name][at] for at in (4, 1, 3, 0, 2, 5)]
    mixed = classical([ml("TreeEnsembleRegressor", "x", "y", **given)], [ROWS], ["y"])
    results = [weft.compile(proto, cache=False)(X) for proto in (mixed, ordered)]
    assert np.array_equal(*results)


def test_trees_of_doubles():
    call = ml("TreeEnsembleRegressor", "x", "y", **stumps(TWO_TARGETS, n_targets=2))
    check(classical([call], [info("x", "float64", ["n", 3])], ["y"]), X.astype("float64"))


def test_doubles_stay_doubles_among_trees():
    """As float32 the first two would be equal to splits, and 0.6f + 0.1f equal to 0.7f."""
    x = np.array([[0.1, -0.2, 0], [0.1 + 1e-8, -0.2 - 1e-9, 0], [1, -1, 0]], "float64")
    doubles = info("x", "float64", ["n", 3])
    leaves = [([0, 1], [0.3, 0.4]), ([0, 1], [0.6, 0.7]), ([0], [0.1]), ([0], [0.25])]
    call = ml("TreeEnsembleRegressor", "x", "y", **stumps(TWO_TARGETS, n_targets=2))
    check(classical([call], [doubles], ["y"]), x)
    for scores, names in ((leaves, [5, 7, 9]), (ONE, [5, 7])):
        given = stumps(scores, classlabels_int64s=names, post_transform="NONE")
        call = ml("TreeEnsembleClassifier", "x", "label scores", **given)
        check(classical([call], [doubles], ["label", "scores"]), x)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_trees_of_integers(dtype):
    call = ml("TreeEnsembleClassifier", "x", "label scores",
              **stumps(THREE, classlabels_int64s=[5, 7, 9]))  # fmt: skip
    proto = classical([call], [info("x", dtype, ["n", 3])], ["label", "scores"])
    check(proto, (X * 3).astype(dtype))


def member_tree():
    """One tree that asks whether x[0] is 1, 3 or 4, then whether x[1] <= 0."""
    return ml(
        "TreeEnsemble", "x", "y", n_targets=2, tree_roots=[0], nodes_featureids=[0, 1],
        nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [2], [6, 0]),
        nodes_splits=helper.make_tensor("s", TensorProto.FLOAT, [2], [0.0, 0.0]),
        nodes_truenodeids=[1, 0], nodes_trueleafs=[0, 1], nodes_falsenodeids=[2, 1],
        nodes_falseleafs=[1, 1], leaf_targetids=[0, 1, 0],
        leaf_weights=helper.make_tensor("w", TensorProto.FLOAT, [3], [10.0, 20.0, 30.0]),
        membership_values=helper.make_tensor(
            "v", TensorProto.FLOAT, [4], [1.0, 3.0, 4.0, float("nan")]
        ),
    )  # fmt: skip


def test_a_branch_that_asks_for_one_of_several_values():
    from onnx.reference import ReferenceEvaluator

    proto = classical([member_tree()], [ROWS], ["y"], version=5)
    x = np.array([[1, -1, 0], [2, -1, 0], [3, 1, 0], [4, 0, 0], [5, 5, 0]], "float32")
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    np.testing.assert_allclose(run(from_onnx(proto), x), wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_featureids": [0, 0, 0, 3, 0, 0]}, "ask for feature 3 of 3"),
        ({"nodes_truenodeids": [0, 0, 0, 2, 0, 0]}, "go round in a ring"),
        ({"nodes_truenodeids": [9, 0, 0, 2, 0, 0]}, "one root of every|a node that there is not"),
        ({"target_ids": [0, 9, 0, 1, 0, 1]}, "of target 9 of 2"),
        ({"nodes_nodeids": [0, 1, 1, 0, 1, 2]}, "different numbers in each tree, found two of one"),
        ({"nodes_nodeids": [0, 1, 2]}, "expected 6 numbers of nodes, got 3"),
        ({"nodes_modes": ["BRANCH_ODD", "LEAF", "LEAF"] * 2}, "modes that there are, got .'ODD'"),
        ({"aggregate_function": "MEDIAN"}, "aggregate: expected AVERAGE, SUM, MIN, MAX"),
    ],
)
def test_trees_that_cannot_be_walked(change, message):
    given = stumps(TWO_TARGETS, n_targets=2) | change
    proto = classical([ml("TreeEnsembleRegressor", "x", "y", **given)], [ROWS], ["y"])
    with pytest.raises(OnnxNodeError, match=message):
        from_onnx(proto)


# Linear models and support vectors


@pytest.mark.parametrize(
    ("count", "transform"),
    [(1, "NONE"), (1, "LOGISTIC"), (2, "SOFTMAX"), (3, "LOGISTIC"), (3, "SOFTMAX")],
)
def test_classes_of_linear_models(count, transform):
    weights = uniform(count * 3, seed=5).tolist()
    names = {"classlabels_ints": [4, 2, 9][: max(count, 2)]}
    call = ml("LinearClassifier", "x", "label scores", coefficients=weights,
              intercepts=[0.1, -0.2, 0.3][:count], post_transform=transform, **names)  # fmt: skip
    check(classical([call], [ROWS], ["label", "scores"]), X)


def vectors(classes, kernel, **attributes):
    rng = np.random.default_rng(7)
    sizes = [4, 5, 6][:classes]
    pairs, total = classes * (classes - 1) // 2, sum(sizes)
    return {
        "coefficients": rng.normal(size=(classes - 1) * total).tolist(),
        "support_vectors": rng.normal(size=total * 3).tolist(), "vectors_per_class": sizes,
        "rho": rng.normal(size=pairs).tolist(), "kernel_type": kernel,
        "kernel_params": [0.3, 0.1, 3.0], "classlabels_ints": [4, 2, 9][:classes],
        **{key: (-np.abs(rng.normal(size=pairs))).tolist() for key in attributes.pop("with_", ())},
        **attributes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kernel", "classes", "probabilities"),
    [("LINEAR", 2, True), ("POLY", 3, False), ("RBF", 2, False), ("RBF", 3, True),
     ("SIGMOID", 3, True)],
)  # fmt: skip
def test_classes_of_support_vectors(kernel, classes, probabilities):
    given = vectors(classes, kernel, with_=("prob_a", "prob_b") if probabilities else ())
    call = ml("SVMClassifier", "x", "label scores", **given)
    check(classical([call], [ROWS], ["label", "scores"]), X, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kernel", "one_class"), [("LINEAR", 0), ("POLY", 0), ("RBF", 1), ("SIGMOID", 0)]
)
def test_regression_by_support_vectors(kernel, one_class):
    given = vectors(2, kernel)
    kept = {name: given[name] for name in ("coefficients", "support_vectors", "kernel_type",
                                           "kernel_params", "rho")}  # fmt: skip
    call = ml("SVMRegressor", "x", "y", n_supports=9, one_class=one_class, **kept)
    check(classical([call], [ROWS], ["y"]), X, rtol=1e-4, atol=1e-5)


# Text and dicts


def named_classes(*more, outputs=("label", "scores")):
    call = ml("LinearClassifier", "x", "label scores", coefficients=uniform(9, seed=5).tolist(),
              intercepts=[0.1, -0.2, 0.3], classlabels_strings=["ant", "bee", "cow"])  # fmt: skip
    return classical([call, *more], [ROWS], list(outputs))


def test_text_passes_to_the_outputs(tmp_path):
    nodes = [ml("ZipMap", "scores", "maps", classlabels_strings=["ant", "bee", "cow"]),
             node("Identity", "label", "first"), node("Reshape", "first s", "z")]  # fmt: skip
    proto = named_classes(*nodes, outputs=("label", "z", "maps"))
    proto.graph.initializer.append(helper.make_tensor("s", TensorProto.INT64, [2], [-1, 1]))
    check(proto, X)
    compiled = weft.compile(proto, cache=False)
    compiled.save(tmp_path / "m.weft")
    loaded = weft.load(tmp_path / "m.weft")
    for mine, its in zip(loaded(X), compiled(X), strict=True):
        assert np.asarray(mine).tolist() == np.asarray(its).tolist()


def test_places_of_text_are_what_the_module_itself_returns():
    mod = from_onnx(named_classes(outputs=["label"]))
    assert run(mod, X).dtype == np.int64


@pytest.mark.parametrize("name", ["Cast", "Neg", "ArgMax"])
def test_text_is_never_computed_with(name):
    attributes = {"to": TensorProto.INT64} if name == "Cast" else {}
    proto = named_classes(node(name, "label", "y", **attributes), outputs=["y"])
    with pytest.raises(OnnxNodeError, match="text"):
        from_onnx(proto)
    assert isinstance(proto.graph.output[0], ValueInfoProto)
