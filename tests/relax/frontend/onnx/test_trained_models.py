"""Trained models of scikit-learn, LightGBM and XGBoost, exported, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import weft

pytest.importorskip("skl2onnx", reason="it exports the models")
onnxruntime = pytest.importorskip("onnxruntime", reason="its results are what is compared with")
pytestmark = [pytest.mark.onnx, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5)).astype("float32")
THREE = np.abs(X[:, 0] * 2).astype(int) % 3
TWO = (X[:, 0] + X[:, 1] > 0).astype(int)
NAMES = np.array(["ant", "bee", "cow"])[THREE]
NUMBERS = (X @ np.arange(1, 6)).astype("float32")
COUNTS = np.abs(X * 2).astype("int64")


def regressors():
    from sklearn import (
        ensemble,
        gaussian_process,
        linear_model,
        neighbors,
        neural_network,
        svm,
        tree,
    )

    return [
        linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(0.01),
        tree.DecisionTreeRegressor(max_depth=4), ensemble.RandomForestRegressor(8, max_depth=4),
        ensemble.GradientBoostingRegressor(n_estimators=8), svm.SVR(),
        neighbors.KNeighborsRegressor(3), neural_network.MLPRegressor(hidden_layer_sizes=(8,)),
        gaussian_process.GaussianProcessRegressor(),
    ]  # fmt: skip


def classifiers():
    from sklearn import (
        decomposition,
        discriminant_analysis,
        ensemble,
        linear_model,
        naive_bayes,
        neighbors,
        neural_network,
        pipeline,
        preprocessing,
        svm,
        tree,
    )

    parts = [("a", linear_model.LogisticRegression()),
             ("b", tree.DecisionTreeClassifier(max_depth=3))]  # fmt: skip
    return [
        linear_model.LogisticRegression(), linear_model.SGDClassifier(loss="log_loss"),
        linear_model.Perceptron(), tree.DecisionTreeClassifier(max_depth=4),
        ensemble.RandomForestClassifier(8, max_depth=4),
        ensemble.AdaBoostClassifier(n_estimators=5),
        ensemble.ExtraTreesClassifier(8, max_depth=4), ensemble.BaggingClassifier(n_estimators=3),
        ensemble.GradientBoostingClassifier(n_estimators=8), ensemble.StackingClassifier(parts),
        svm.SVC(), svm.LinearSVC(), svm.NuSVC(kernel="poly"), naive_bayes.GaussianNB(),
        naive_bayes.BernoulliNB(), neighbors.KNeighborsClassifier(3),
        neural_network.MLPClassifier((8,), max_iter=60),
        discriminant_analysis.LinearDiscriminantAnalysis(),
        discriminant_analysis.QuadraticDiscriminantAnalysis(),
        pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(3),
                               linear_model.LogisticRegression()),
    ]  # fmt: skip


def others():
    from sklearn import cluster, decomposition, ensemble, impute, preprocessing, svm

    return [
        preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.Normalizer(),
        preprocessing.Binarizer(), preprocessing.PolynomialFeatures(2),
        preprocessing.KBinsDiscretizer(3, encode="onehot-dense"), impute.SimpleImputer(),
        decomposition.PCA(2), decomposition.TruncatedSVD(2), cluster.KMeans(3, n_init=2),
        ensemble.IsolationForest(n_estimators=8), svm.OneClassSVM(),
    ]  # fmt: skip


def estimators():
    """By name: (estimator, its data, its target or None)."""
    from sklearn import ensemble, feature_selection, linear_model, naive_bayes, preprocessing, svm

    cases = {type(item).__name__: (item, X, NUMBERS) for item in regressors()}
    cases |= {type(item).__name__: (item, X, THREE) for item in classifiers()}
    cases |= {type(item).__name__: (item, X, None) for item in others()}
    cases["SelectKBest"] = (feature_selection.SelectKBest(k=2), X, THREE)
    cases["MultinomialNB"] = (naive_bayes.MultinomialNB(), np.abs(X), THREE)
    for name, kind in (("OrdinalEncoder", {}), ("OneHotEncoder", {"handle_unknown": "ignore"})):
        cases[name] = (getattr(preprocessing, name)(**kind), COUNTS, None)
    for name, item in (("LogisticRegression", linear_model.LogisticRegression()),
                       ("RandomForestClassifier", ensemble.RandomForestClassifier(8, max_depth=4)),
                       ("GradientBoostingClassifier",
                        ensemble.GradientBoostingClassifier(n_estimators=8)),
                       ("SVC", svm.SVC())):  # fmt: skip
        cases[f"{name} of two classes"] = (item, X, TWO)
        cases[f"{name} of names"] = (type(item)(**item.get_params()), X, NAMES)
    return cases


CASES = estimators()


@pytest.mark.parametrize("name", CASES)
def test_an_estimator_of_scikit_learn(name):
    from skl2onnx import to_onnx

    estimator, data, target = CASES[name]
    estimator.fit(data, target) if target is not None else estimator.fit(data)
    opsets = {"": 18, "ai.onnx.ml": 3}
    same_at_three_sizes(to_onnx(estimator, data[:1], target_opset=opsets), data)


WORDS = "the quick brown fox jumps over a lazy dog and runs away from the big bad wolf".split()
DOCUMENTS = np.array([" ".join(RNG.choice(WORDS, RNG.integers(1, 9))) for _ in range(80)], object)
COLOURS = np.array(["red", "green", "blue", "Green"], object)[RNG.integers(0, 4, (80, 2))]


def estimators_of_text():
    """By name: (estimator, its data, its target or None)."""
    from sklearn import linear_model, pipeline, preprocessing
    from sklearn.feature_extraction import text

    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore")
    classifier = pipeline.make_pipeline(
        text.TfidfVectorizer(ngram_range=(1, 2)), linear_model.LogisticRegression()
    )
    return {
        "OneHotEncoder": (one_hot, COLOURS, None),
        "OrdinalEncoder": (preprocessing.OrdinalEncoder(), COLOURS, None),
        "CountVectorizer": (text.CountVectorizer(lowercase=False), DOCUMENTS, None),
        "CountVectorizer of letters": (text.CountVectorizer(analyzer="char"), DOCUMENTS, None),
        "TfidfVectorizer": (text.TfidfVectorizer(), DOCUMENTS, None),
        "classifier of texts": (classifier, DOCUMENTS, NAMES),
    }


@pytest.mark.parametrize("name", ["OneHotEncoder", "OrdinalEncoder", "CountVectorizer",
                                  "CountVectorizer of letters", "TfidfVectorizer",
                                  "classifier of texts"])  # fmt: skip
def test_an_estimator_of_text(name):
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import StringTensorType

    estimator, data, target = estimators_of_text()[name]
    estimator.fit(data, target)
    data = data.reshape(len(data), -1)
    kinds = [("X", StringTensorType([None, data.shape[1]]))]
    opsets = {"": 18, "ai.onnx.ml": 3}
    proto = convert_sklearn(estimator, initial_types=kinds, target_opset=opsets)
    for node in proto.graph.node:  # ONNX Runtime refuses a locale that the machine does not have
        if node.op_type == "StringNormalizer":
            kept = [item for item in node.attribute if item.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("locale", "C")])
    same_at_three_sizes(proto, data)


def boosted():
    """By name: (model, what converts it, its target)."""
    lightgbm, xgboost = pytest.importorskip("lightgbm"), pytest.importorskip("xgboost")
    tools = pytest.importorskip("onnxmltools")
    small = {"n_estimators": 6, "max_depth": 4}
    quiet = small | {"verbose": -1, "min_child_samples": 5}
    return {
        "LGBMClassifier": (lightgbm.LGBMClassifier(**quiet), tools.convert_lightgbm, THREE),
        "LGBMClassifier of two": (lightgbm.LGBMClassifier(**quiet), tools.convert_lightgbm, TWO),
        "LGBMRegressor": (lightgbm.LGBMRegressor(**quiet), tools.convert_lightgbm, NUMBERS),
        "XGBClassifier": (xgboost.XGBClassifier(**small), tools.convert_xgboost, THREE),
        "XGBClassifier of two": (xgboost.XGBClassifier(**small), tools.convert_xgboost, TWO),
        "XGBRegressor": (xgboost.XGBRegressor(**small), tools.convert_xgboost, NUMBERS),
    }  # fmt: skip


@pytest.mark.parametrize("name", [f"{kind}{rest}" for kind in ("LGBM", "XGB") for rest in
                                  ("Classifier", "Classifier of two", "Regressor")])  # fmt: skip
def test_boosted_trees(name):
    model, convert, target = boosted()[name]
    from onnxmltools.convert.common.data_types import FloatTensorType

    data = X.copy()
    data[::7, 2] = np.nan
    model.fit(data, target)
    proto = convert(model, initial_types=[("X", FloatTensorType([None, 5]))], target_opset=15)
    same_at_three_sizes(proto, data)


def same_at_three_sizes(proto, data):
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (name,) = [item.name for item in session.get_inputs()]
    compiled = weft.compile(proto, cache=False)
    for count in (1, 13, 80):
        rows = data[:count]
        wanted = session.run(None, {name: rows})
        results = compiled(rows)
        for mine, its in zip(results if len(wanted) > 1 else [results], wanted, strict=True):
            if isinstance(its, list):  # what ZipMap gives
                assert [list(row) for row in mine] == [list(row) for row in its]
                mine, its = [[list(row.values()) for row in table] for table in (mine, its)]
            its = np.asarray(its)
            assert np.shape(mine) == its.shape
            if its.dtype.kind in "OU":
                assert mine.tolist() == its.tolist()
            else:
                np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-4)
