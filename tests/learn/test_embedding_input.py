"""EmbeddingClassifier, SkipGram and the losses: calls that make no sense get an error that says so, before any work."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer.errors import DataError, FginferError, FormatError, ModelError, SettingsError, SolverError
from fginfer.learn import EmbeddingClassifier, SkipGram
from fginfer.learn.losses import EmbeddingLoss, decomposed_loss, loss_of_scores

NAN, INF = np.nan, np.inf
X = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
Y = np.arange(40) % 4
WRONG_RUNS: dict[str, list[Any]] = {
    "max_iter": [0, -1, 1.5, "a"], "time_limit": [-1, NAN, "a"], "n_jobs": [0, 1.5, "a"], "eval_every": [-1, "a"],
    "random_state": [-1, 1.5, "a", 2**70], "verbose": ["a", None], "callback": ["a", 3], "warm_start": ["a", None],
    "checkpoint": [3, "/no/such/folder/run.npz"], "checkpoint_interval": [-1, "a"],
}  # fmt: skip
WRONG_LOSSES: dict[str, list[Any]] = {
    "queries": [0, -1, 1.5, "a", 2**40, True], "probes": [0, -1, 1.5, "a", 2**40], "keep": [-1, 1.5, "a", 2**40],
    "blocks": [0, -1, 1.5, "a", 2**40], "rounds": [0, "a", 2**40], "method": ["x", None, 3, ["search"]],
}  # fmt: skip


def every(*tables: dict[str, list[Any]]) -> list[Any]:
    return [pytest.param({name: value}, id=f"{name}={value!r}") for t in tables for name, v in t.items() for value in v]


CLASSIFIER: dict[str, list[Any]] = {
    "candidates": [0, -1, "a"], "mu": [0, -1, NAN, INF, "a", None], "hidden": [0, -1, 1.5, "a"],
    "eta0": [0, -1, NAN, "a"], "batch_size": [0, 1.5, "a"], "sampled_epochs": [-1, NAN, INF, "a"],
    "alpha": [-1, NAN, "a"], "task": ["x", None, [1]], "loss": ["x", None, [1]], "fit_intercept": ["a", None],
}  # fmt: skip


@pytest.mark.parametrize("wrong", every(WRONG_RUNS, WRONG_LOSSES, CLASSIFIER))
def test_settings_of_the_classifier(wrong: dict[str, Any]) -> None:
    settings = {"method": "decomposed", "blocks": 2, "queries": 3, "max_iter": 1, "sampled_epochs": 0, **wrong}
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        EmbeddingClassifier(**settings).fit(X, Y)


@pytest.mark.parametrize(
    "y", [Y * 0, Y[:-1], None, Y + 0.5, np.where(Y == 1, NAN, Y), np.c_[Y, Y], [None, 1] * 20],
    ids=["one class", "short", "none", "continuous", "nan", "two columns", "none among labels"],
)  # fmt: skip
def test_labels_of_the_classifier(y: Any) -> None:
    with pytest.raises(ValueError, match=r"y|class|label|samples"):
        EmbeddingClassifier(max_iter=1).fit(X, y)


@pytest.mark.parametrize("y", [[[]] * 40, [[1, 2]] * 40, Y, ["ab"] * 40, [[1], [2]], [None] * 40, np.full((40, 3), 2)])
def test_label_sets_of_the_classifier(y: Any) -> None:
    with pytest.raises(DataError):
        EmbeddingClassifier("multilabel", max_iter=1).fit(X, y)


@pytest.mark.parametrize(
    "x",
    [np.where(X > 1, NAN, X), np.where(X > 1, INF, X), X.astype(float) * 1e39, X + 1j, [["a"] * 5] * 40, X[None],
     X[:, 0], X[:0], X[:, :0]],
    ids=["nan", "inf", "too large", "complex", "words", "3d", "flat", "no rows", "no columns"],
)  # fmt: skip
def test_features_of_the_classifier(x: Any) -> None:
    with pytest.raises(ValueError, match=r"X|array|Complex|float"):
        EmbeddingClassifier(max_iter=1).fit(x, Y[: len(x)])


def test_steps_that_are_too_large_say_so() -> None:
    for settings in ({"eta0": 1e300}, {"alpha": 1e30, "max_iter": 9}, {"eta0": 1e300, "method": "search"}):
        model = EmbeddingClassifier(**{"max_iter": 3, "queries": 3, "sampled_epochs": 0, **settings})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy's, on the way there
            with pytest.raises(SolverError, match="eta0"):
                model.fit(X, Y)


def test_one_sample_a_label_is_nothing_to_warn_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = EmbeddingClassifier(max_iter=30, eta0=0.5, random_state=0).fit(X, np.arange(40))
    assert model.score(X, np.arange(40)) > 0.5


def test_questions_to_a_classifier() -> None:
    model = EmbeddingClassifier(max_iter=1).fit(X, Y)
    for k in (0, 5, 1.5, "2", None, True):
        with pytest.raises(SettingsError, match="k must"):
            model.top(X, k)
    for way in ({"probes": -3}, {"probes": "x"}, {"candidates": 0}, {"probes": 1, "candidates": 1}):
        with pytest.raises(SettingsError):
            model.top(X, 1, **way)
    for x in (X[:, :3], X * NAN, X[:0]):
        with pytest.raises(ValueError, match=r"X|sample"):
            model.predict(x)
    assert model.score(X, Y + 100) == 0  # labels never seen are never right
    sets = EmbeddingClassifier("multilabel", max_iter=1).fit(X, [[1], [2, 3]] * 20)
    assert sets.score(X, [[77]] * 40) == 0
    with pytest.raises(DataError, match="40 examples"):
        sets.score(X, [[1]])


SENTENCES = [" ".join(f"{'ab'[j % 2]}{(i * j) % 12}" for i in range(8)) for j in range(1, 60)]
SMALL: dict[str, Any] = {"size": 6, "window": 3, "max_iter": 2, "min_count": 1, "subsample": 0}
SKIPGRAM: dict[str, list[Any]] = {
    "size": [0, 1.5, "a", None, 2**40], "window": [0, "a", 2**40], "min_count": [0, "a"], "subsample": [-1, NAN, "a"],
    "negatives": [0, "a", 2**40], "step0": [0, NAN, "a"], "eta": [0, -1, "a", INF],
}  # fmt: skip


@pytest.mark.parametrize("wrong", every(WRONG_RUNS, WRONG_LOSSES, SKIPGRAM))
def test_settings_of_skipgram(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        SkipGram(**{**SMALL, **wrong}).fit(SENTENCES)


@pytest.mark.parametrize(
    "text", [None, 3, [], "a b", b"a b", [b"a b"], [[["a"]]], [None], [1, 2], ["a a a"], ["", " "]]
)
def test_texts_of_skipgram(text: Any) -> None:
    with pytest.raises(DataError):
        SkipGram(**SMALL).fit(text)


def test_a_window_wider_than_any_sentence_is_the_sentence() -> None:
    wide, all_of_it = (SkipGram(**{**SMALL, "max_iter": 1, "window": w}).fit(SENTENCES) for w in (10**9, 7))
    assert (wide.embedding_ == all_of_it.embedding_).all()
    assert wide.objective_ == all_of_it.objective_


def test_questions_to_skipgram() -> None:
    model = SkipGram(**SMALL).fit(SENTENCES)
    for n in (-1, 1.5, "x", None):
        with pytest.raises(SettingsError):
            model.most_similar(model.vocabulary_[0], n)
    for word in (3, None, [1, 2], "", np.zeros((2, 6)), ["x"] * 6):
        with pytest.raises(DataError):
            model.most_similar(word)
    assert model.most_similar(model.vocabulary_[0], 0) == []
    assert len(model.most_similar(model.vocabulary_[0], 10**9)) == len(model.vocabulary_) - 1
    for text in (None, "a1 a2", [3], [[1]]):
        with pytest.raises(DataError):
            model.transform(text)
    assert model.transform([]).shape == (0, 6)


@pytest.mark.parametrize(
    "text",
    [b"", b"\n", b"3\n", b"-1 2\n", b"1 0\n", b"1 2 3\n", b"9999999999 9999999999\n", b"1 9999999999\nw 1\n",
     b"1 2\nw 1 2\nv 1 2\n", b"2 2\nw 1 2\nw 1 2\n", b"1 2\nw 1e400 2\n", b"1 2\nw  1 2\n", b"1 2\n 1 2\n",
     b"1 2\n\n", b"1 2\nw 1 2\n\n", b"\xff\xfe\n", b"1 2\nw\t1\t2\n", b"1 2\nw 0x10 2\n", b"1 2\nw 1_0 2\n",
     b"1 2\nw inf 2\n", b"\x1f\x8b\x08\x00"],
)  # fmt: skip
def test_damaged_files_of_vectors(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "words.txt").write_bytes(text)
    with pytest.raises(FormatError):
        SkipGram.load(tmp_path / "words.txt")


@pytest.mark.parametrize("text", [b"1 2\r\nw 1 2\r\n", b"1 2\nw 1 2", b"1 2\nw 1 2 \n"])
def test_files_of_vectors_as_others_write_them(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "words.txt").write_bytes(text)
    model = SkipGram.load(tmp_path / "words.txt")
    assert model.vocabulary_ == ["w"]
    assert model["w"].tolist() == [1, 2]


# ---- losses

ROWS = np.random.default_rng(1).standard_normal((20, 4)).astype(np.float32)
LOSSES: dict[str, list[Any]] = {
    "loss": [None, 3, ["a"]], "mu": [None, "a", NAN, -1, True], "candidates": [0, "a"], "rest": [None, "x"],
    "clusters": [-1, 21, "a", 2**40], "finish": ["x"], "threshold": [NAN, "a", -1.0], "n_jobs": [0, -1, "a", 10**6],
    "seed": [-1, 2**70, "a", 0.5],
}  # fmt: skip


@pytest.mark.parametrize("wrong", every(WRONG_LOSSES, LOSSES))
def test_settings_of_losses(wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        EmbeddingLoss(ROWS, **{"loss": "margin", "method": "decomposed", "queries": 5, "blocks": 2, **wrong})


@pytest.mark.parametrize(
    "rows", [[[1.0, 2.0]], ROWS.astype(float), np.asfortranarray(ROWS), ROWS[0], ROWS * np.float32(NAN), ROWS[None]],
    ids=["list", "double", "columns first", "flat", "nan", "3d"],
)  # fmt: skip
def test_rows_of_losses(rows: Any) -> None:
    with pytest.raises(ModelError):
        EmbeddingLoss(rows)


@pytest.mark.parametrize("loss", ["margin", "cross-entropy", "triplet", "nca"])
@pytest.mark.parametrize("method", ["exact", "sampled", "search", "decomposed"])
def test_batches_of_losses(loss: str, method: str) -> None:
    model = EmbeddingLoss(ROWS, loss, method, queries=5, blocks=2)
    x = ROWS[:1]
    for wrong_x in (x * NAN, x * INF, None, "a", ROWS[0], x[:, :2]):
        with pytest.raises(ModelError):
            model.evaluate(wrong_x, [[0]])
    for positives in (None, 3, [], [[0.5]], [[-1]], [[2**40]], [["a"]], [[]], [[20]]):
        with pytest.raises(ModelError):
            model.evaluate(x, positives)
    for weights in ([[1.0, 2.0]], [], [["a"]], [[NAN]], [[INF]], [[-1.0]], [None]):
        with pytest.raises(ModelError):
            model.evaluate(x, [[1]], weights)
    assert model.evaluate(ROWS[:0], []).values.shape == (0,)
    model.evaluate(x, [[1]])
    for size in (NAN, INF, "a", None):
        with pytest.raises(SettingsError, match="size"):
            model.step(size)


@pytest.mark.parametrize("loss", ["margin", "cross-entropy", "triplet"])
@pytest.mark.parametrize("method", ["exact", "sampled", "search", "decomposed"])
def test_scores_beyond_single_precision_are_told(loss: str, method: str) -> None:
    large = (ROWS * 1e30).astype(np.float32)
    model = EmbeddingLoss(large, loss, method, queries=20, blocks=2)
    with pytest.raises(DataError, match="too large"):
        model.evaluate(large[:2], [[0], [1]])


def test_one_vector_of_scores() -> None:
    for scores, positives in (
        ("abc", [0]), ([[1.0]], [0]), ([1.0, 2.0], [2]), ([1.0, 2.0], []), ([1.0, 2.0], "a"), (None, [0]),
        ([1.0, NAN], [0]), ([1.0, 2.0], [0, 1]), ([1.0, 2.0], [0.5]),
    ):  # fmt: skip
        with pytest.raises(FginferError):
            loss_of_scores("margin", scores, positives)
    for weights in ([1.0], "a", [1.0, NAN], [1.0, INF], [1.0, -1.0], [[1.0, 1.0]]):
        with pytest.raises(DataError, match="weights"):
            loss_of_scores("cross-entropy", [1.0, 2.0, 3.0], [0, 1], weights=weights)
    for blocks in (np.zeros((0, 3)), "a", np.zeros(3), np.full((2, 3), NAN)):
        with pytest.raises(DataError):
            decomposed_loss("margin", blocks, blocks, [0])


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1.0, 1e8, 1e16, 1e20, 1e100, 1e300])
@pytest.mark.parametrize("mu", [5e-324, 1e-300, 1e-16, 1e-3, 1.0, 1e6, 1e16, 1e100])
def test_margins_at_every_scale(scale: float, mu: float) -> None:
    """The projection of one positive and one negative is min(1, over / (2 mu)) for each."""
    for z in ([0.5 * scale, -scale], [-scale, scale], [scale, scale]):
        value, gradient = loss_of_scores("margin", z, [1], mu=mu)
        over = max(0.0, z[0] - z[1] + 1)
        alpha = min(1.0, over / 2 / mu)
        assert value == pytest.approx(alpha * over - (mu * alpha) * alpha, rel=1e-9, abs=0)
        assert gradient == pytest.approx([alpha, -alpha], rel=1e-9, abs=0)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9, -1e9])
def test_margins_do_not_see_what_all_scores_have_in_common(offset: float) -> None:
    rng = np.random.default_rng(5)
    for mu in (0.1, 1.0, 5.0):
        z = rng.integers(-40, 40, 30) / 8  # exact with every offset
        value, gradient = loss_of_scores("margin", z, [3, 7], mu=mu)
        moved = loss_of_scores("margin", z + offset, [3, 7], mu=mu)
        assert moved[0] == pytest.approx(value, rel=1e-12)
        assert moved[1] == pytest.approx(gradient, abs=1e-12)
