"""What all estimators do alike: empty sequences, texts as tokens, no time, labels that are listed twice, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fginfer.extreme import ExtremeClassifier
from fginfer.latent import BPMeans, LatentFeatureLasso, MixedRegression
from fginfer.learn import ChainCRF, EmbeddingClassifier, Example, GraphCRF, SkipGram, StructuredSVM

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(4, 3)) for _ in range(8)]
Y = [np.array(["odd", "even"])[(x[:, 0] > 0).astype(int)] for x in X]
ROWS = RNG.normal(size=(30, 4))
SETS = [["a"] if row[0] > 0 else ["b", "c"] for row in ROWS]


@pytest.mark.parametrize("kind", [StructuredSVM, ChainCRF])
def test_a_sequence_without_tokens_has_no_labels_and_harms_no_other(kind: Any) -> None:
    model = kind(max_iter=20).fit(X, Y)
    whole = model.predict(X[:3])
    mixed = model.predict([np.zeros((0, 3)), X[0], X[1], np.zeros((0, 3)), X[2]])
    assert [len(labels) for labels in mixed] == [0, 4, 4, 0, 4]
    assert mixed[0].dtype == mixed[1].dtype
    for alone, among in zip(whole, (mixed[1], mixed[2], mixed[4]), strict=True):
        assert np.array_equal(alone, among)
    scores = model.decision_function([X[0], np.zeros((0, 3))])
    assert np.array_equal(scores[0], model.decision_function(X[:1])[0])
    assert scores[1].shape == (0, 2)
    if kind is ChainCRF:
        assert [p.shape for p in model.predict_marginals([np.zeros((0, 3)), X[0]])] == [(0, 2), (4, 2)]


def test_graphs_without_nodes() -> None:
    def graph(x: Any) -> Example:
        return Example(x, np.array([[0, 1], [1, 2]] if len(x) else np.zeros((0, 2)), int))

    model = GraphCRF(max_iter=10).fit([graph(x) for x in X], Y)
    found = model.predict([graph(X[0]), graph(np.zeros((0, 3)))])
    assert np.array_equal(found[0], model.predict([graph(X[0])])[0])
    assert len(found[1]) == 0


@pytest.mark.parametrize("kind", [StructuredSVM, ChainCRF])
def test_a_text_is_a_token_with_one_feature(kind: Any) -> None:
    words = [["the", "dog", "runs"], ["a", "dog"], ["the", "cat"]]
    tags = [["D", "N", "V"], ["D", "N"], ["D", "N"]]
    words, tags = 20 * words, 20 * tags
    by_text = kind(max_iter=50).fit(words, tags)
    by_names = kind(max_iter=50).fit([[[w] for w in s] for s in words], tags)
    for model, asked in ((by_text, [["the", "dog"], [], ["runs"]]), (by_names, [[["the"], ["dog"]], [], [["runs"]]])):
        found = model.predict(asked)
        assert [list(labels) for labels in found] == [["D", "N"], [], ["V"]]


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (StructuredSVM(time_limit=0), (X, Y)),
        (StructuredSVM(model="multilabel", time_limit=0), (ROWS, SETS)),
        (ChainCRF(time_limit=0), (X, Y)),
        (EmbeddingClassifier(time_limit=0), (ROWS, np.arange(30) % 3)),
        (SkipGram(time_limit=0, min_count=1), (["a b a b", "b a b a"],)),
        (ExtremeClassifier(time_limit=0), (ROWS, SETS)),
        (LatentFeatureLasso(2, time_limit=0), (ROWS,)),
        (MixedRegression(2, time_limit=0), (ROWS, ROWS[:, 0])),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore")
def test_no_time_is_a_limit_like_others(model: Any, data: Any) -> None:
    assert model.fit(*data).status_ == "time_limit"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda: StructuredSVM(model="multilabel", max_iter=20, random_state=0),
        lambda: ExtremeClassifier(C=1.0, random_state=0),
        lambda: EmbeddingClassifier(task="multilabel", max_iter=3, random_state=0),
    ],
)
def test_a_label_listed_twice_is_one_label(make: Any) -> None:
    twice = [[*labels, labels[0]] for labels in SETS]
    one, other = make().fit(ROWS, SETS).predict(ROWS), make().fit(ROWS, twice).predict(ROWS)
    assert [list(labels) for labels in one] == [list(labels) for labels in other]


def test_the_threshold_gives_as_many_labels_as_training_rows_have() -> None:
    """Also where that is all of them, or none of some rows."""
    every = ExtremeClassifier(C=1.0, random_state=0).fit(ROWS, [["a", "b"]] * 30)
    assert every.predict(ROWS) == [["a", "b"]] * 30
    one = ExtremeClassifier(C=1.0, random_state=0).fit(ROWS[:1], [["a", "b"]])
    assert one.predict(ROWS[:1]) == [["a", "b"]]
    some = ExtremeClassifier(C=1.0, random_state=0).fit(ROWS, SETS)
    assert sum(map(len, some.predict(ROWS))) == sum(map(len, SETS))


@pytest.mark.parametrize("kind", [BPMeans, LatentFeatureLasso])
def test_the_error_of_latent_features_is_the_root_of_the_mean_square(kind: Any) -> None:
    table = RNG.normal(size=(25, 6))
    model = kind(3, random_state=0).fit(table)
    rest = table - model.assignments_ @ model.components_
    assert model.error_ == pytest.approx(np.sqrt(np.mean(rest**2)), rel=1e-9)
