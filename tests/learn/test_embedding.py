"""EmbeddingClassifier: the scikit-learn contract, every loss and method, runs that stop and go on, files, bad input."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import check_estimator

from fginfer.archives import write_arrays
from fginfer.errors import DataError, FormatError, SettingsError
from fginfer.learn import EmbeddingClassifier

Data = tuple[np.ndarray, np.ndarray]


def faces(n: int, labels: int = 60, d: int = 16, seed: int = 0) -> Data:
    """Samples around one point per label."""
    rng = np.random.default_rng(seed)
    points = np.random.default_rng(99).standard_normal((labels, d))
    y = rng.integers(0, labels, n)
    y[:labels] = np.arange(labels)
    return ((points[y] + 0.4 * rng.standard_normal((n, d))) / 3).astype(np.float32), y


@pytest.mark.slow
def test_scikit_learns_checks() -> None:
    check_estimator(EmbeddingClassifier(eta0=0.3, max_iter=100))


@pytest.mark.parametrize("loss", ["margin", "cross-entropy", "triplet", "nca"])
@pytest.mark.parametrize("method", ["exact", "sampled", "search", "decomposed"])
def test_every_loss_and_method_learns(loss: str, method: str) -> None:
    X, y = faces(1500)
    eta0 = 0.05 if loss in ("triplet", "nca") else 0.5
    model = EmbeddingClassifier(loss=loss, method=method, eta0=eta0, max_iter=6, queries=20, probes=3).fit(X, y)
    assert model.score(*faces(400, seed=1)) > 0.9
    assert model.status_ == "iteration_limit"
    assert model.objective_ is not None
    assert model.trace_[-1].entries_touched > 0


def multilabel(n: int, seed: int = 0) -> tuple[sp.csr_matrix, list[list[str]]]:
    """Words that go with labels, among others."""
    rng = np.random.default_rng(seed)
    sets = [sorted(rng.choice(30, rng.integers(1, 4), replace=False)) for _ in range(n)]
    X = np.zeros((n, 90), np.float32)
    for row, labels in zip(X, sets, strict=True):
        for label in labels:
            row[3 * label + rng.integers(0, 3)] = 1
        row[rng.integers(0, 90, 2)] += 0.3
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return sp.csr_matrix(X), [[f"tag{a}" for a in labels] for labels in sets]


@pytest.mark.parametrize("method", ["exact", "search", "decomposed"])
def test_multilabel_with_a_hidden_layer_over_sparse_input(method: str) -> None:
    X, y = multilabel(1500)
    model = EmbeddingClassifier(
        "multilabel", "cross-entropy", method, hidden=24, eta0=0.1, max_iter=12, queries=12, random_state=1
    ).fit(X, y)
    X2, y2 = multilabel(300, 1)
    assert model.score(X2, y2) > 0.9
    predicted = model.predict(X2)
    assert abs(np.mean([len(p) for p in predicted]) - np.mean([len(s) for s in y2])) < 0.7
    right = sum(len(set(p) & set(s)) for p, s in zip(predicted, y2, strict=True))
    assert right > 0.65 * sum(map(len, y2))
    assert model.embed(X2).shape == (300, 25)
    matrix = np.array([[f"tag{a}" in s for a in range(30)] for s in y], int)
    other = EmbeddingClassifier("multilabel", eta0=0.3, max_iter=2).fit(X, matrix)
    assert other.predict(X2).shape == (300, 30)


def test_the_best_labels_of_thousands_by_an_index() -> None:
    X, y = faces(6000, labels=2500)
    model = EmbeddingClassifier(method="sampled", max_iter=1).fit(X, y)
    labels, scores = model.top(X[:50], 5)
    assert model._index is not None
    expected = np.argsort(-model.decision_function(X[:50]), axis=1)[:, :5]
    assert np.mean(labels == expected) > 0.98  # equal but for ties of rounding
    assert (np.diff(scores) <= 0).all()
    assert model.top(X[:5], 3, probes=2)[0].shape == (5, 3)
    by_codes = model.top(X[:5], 3, candidates=len(model.classes_))
    assert all(np.array_equal(a, b) for a, b in zip(by_codes, model.top(X[:5], 3), strict=True))
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X[:50]) == model.predict(X[:50])).all()


@pytest.mark.parametrize("method", ["exact", "sampled", "search", "decomposed"])
def test_seeds_and_threads(method: str) -> None:
    X, y = faces(600)
    options: dict[str, Any] = {"method": method, "max_iter": 2, "queries": 15, "probes": 2, "eta0": 0.3}
    one, two = (EmbeddingClassifier(**options, n_jobs=n, random_state=3).fit(X, y).rows_ for n in (1, 3))
    other = EmbeddingClassifier(**options, random_state=4).fit(X, y).rows_
    assert (one == two).all()
    assert (one != other).any()


@pytest.mark.parametrize("hidden", [None, 8])
def test_runs_stop_and_go_on(tmp_path: Path, hidden: int | None) -> None:
    X, y = faces(600)
    options: dict[str, Any] = {"loss": "margin", "hidden": hidden, "eta0": 0.2, "eval_every": 1}
    whole = EmbeddingClassifier(**options, max_iter=4).fit(X, y)
    path = tmp_path / "run.npz"
    seen: list[int] = []

    def stop(point: Any) -> bool:
        seen.append(point.passes)
        return point.passes == 2

    part = EmbeddingClassifier(**options, max_iter=4, checkpoint=path, callback=stop).fit(X, y)
    assert (part.status_, seen) == ("stopped", [1, 2])
    rest = EmbeddingClassifier(**options, max_iter=4, checkpoint=path).fit(X, y)
    assert (rest.rows_ == whole.rows_).all()
    assert [p.passes for p in rest.trace_] == [3, 4]
    warm = EmbeddingClassifier(**options, max_iter=2, warm_start=True).fit(X, y)
    assert (warm.set_params(max_iter=2).fit(X, y).rows_ == whole.rows_).all()
    with pytest.raises(SettingsError, match="other data or settings"):
        EmbeddingClassifier(**{**options, "eta0": 0.1}, checkpoint=path).fit(X, y)
    limited = EmbeddingClassifier(**options, max_iter=10**6, time_limit=0.2).fit(X, y)
    assert limited.status_ == "time_limit"


def test_ctrl_c_keeps_what_was_learned() -> None:
    X, y = faces(600)

    def interrupt(point: Any) -> None:
        raise KeyboardInterrupt

    model = EmbeddingClassifier(max_iter=5, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.predict(X).shape == (600,)


def test_files(tmp_path: Path) -> None:
    X, y = faces(300)
    names = np.array([f"person {a}" for a in y])
    model = EmbeddingClassifier(max_iter=2, hidden=5).fit(X, names)
    model.save(tmp_path / "m.npz")
    again = EmbeddingClassifier.load(tmp_path / "m.npz")
    assert (again.predict(X) == model.predict(X)).all()
    assert again.get_params() == model.get_params()
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(FormatError):
        EmbeddingClassifier.load(tmp_path / "bad.npz")
    with np.load(tmp_path / "m.npz") as content:
        arrays = {name: content[name] for name in content.files}
    arrays["rows"] = arrays["rows"][:, 1:]
    with open(tmp_path / "cut.npz", "wb") as file:
        write_arrays(file, arrays)
    with pytest.raises(FormatError, match="weights"):
        EmbeddingClassifier.load(tmp_path / "cut.npz")


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"task": "both"}, "task"),
        ({"loss": "hinge"}, "loss"),
        ({"method": "magic"}, "method"),
        ({"mu": 0}, "mu"),
        ({"eta0": -1.0}, "eta0"),
        ({"batch_size": 0}, "batch_size"),
        ({"queries": 61}, "61"),
        ({"queries": 0}, "queries"),
        ({"probes": -1}, "probes"),
        ({"candidates": 0}, "candidates"),
        ({"candidates": 5, "probes": 1, "method": "search"}, "candidates"),
        ({"hidden": 0}, "hidden"),
        ({"keep": -1}, "keep"),
        ({"method": "decomposed", "blocks": 18}, "blocks"),
        ({"method": "decomposed", "blocks": 4, "hidden": 2}, "blocks"),
        ({"blocks": 0}, "blocks"),
        ({"time_limit": -1}, "time_limit"),
        ({"max_iter": 1.5}, "max_iter"),
    ],
)
def test_bad_settings(settings: dict[str, Any], text: str) -> None:
    """Told before the epochs by sampling that come first."""
    X, y = faces(200)
    seen: list[Any] = []
    with pytest.raises(SettingsError, match=text):
        EmbeddingClassifier(**{"eval_every": 1, "callback": seen.append, "sampled_epochs": 2, **settings}).fit(X, y)
    assert not seen


def test_bad_data() -> None:
    X, y = faces(200)
    with pytest.raises(DataError, match="one class"):
        EmbeddingClassifier().fit(X, np.zeros(200, int))
    with pytest.raises(DataError, match="no example"):
        EmbeddingClassifier("multilabel").fit(X, [[] for _ in range(200)])
    with pytest.raises(DataError, match="single precision"):
        EmbeddingClassifier().fit(X.astype(float) * 1e300, y)
    with pytest.raises(SettingsError, match="k must"):
        EmbeddingClassifier(max_iter=1).fit(X, y).top(X, 61)


@pytest.mark.parametrize(("method", "queries"), [("search", 64), ("decomposed", 128)])
def test_searches_go_by_codes_unless_clusters_or_exact_ones_are_asked_for(method, queries):
    X = np.eye(200, 8, dtype=np.float32)
    for given, wanted in (({}, (1, queries)), ({"probes": 2}, (None, None)), ({"candidates": None}, (None, None))):
        model = EmbeddingClassifier(method=method, **given)
        model.n_features_in_ = X.shape[1]
        loss = model._sgd(0, 200).loss
        assert (loss["candidates"], loss["queries"]) == wanted


@pytest.mark.parametrize("loss", ["margin", "nca"])
@pytest.mark.parametrize("method", ["search", "decomposed"])
def test_by_codes_a_model_is_about_as_good_as_by_all_labels(method, loss):
    rng = np.random.default_rng(0)
    points = rng.standard_normal((150, 32))
    y = np.repeat(np.arange(150), 4)
    X = (points[y] + 0.3 * rng.standard_normal((len(y), 32))).astype(np.float32) / 6
    eta = {"margin": 4.0, "nca": 0.3}[loss]
    right = [
        EmbeddingClassifier(loss=loss, method=m, eta0=eta, max_iter=3, random_state=0).fit(X, y).score(X, y)
        for m in ("exact", method)
    ]
    assert right[1] > right[0] - 0.03
    assert right[0] > 0.5
