"""Losses over many labels: against their definitions, finite differences and a quadratic program; every method against
the exact one; bounds; threads; steps; bad input."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fginfer.errors import DataError, FginferError, SettingsError
from fginfer.learn.losses import EmbeddingLoss, decomposed_loss, loss_of_scores

LOSSES = ("cross-entropy", "margin", "triplet")


def hard(loss: str, z: np.ndarray, positives: list[int]) -> float:
    """The definitions, unsmoothed, over all pairs."""
    negatives = [k for k in range(len(z)) if k not in positives]
    if loss == "cross-entropy":
        return float(sum(np.log(np.exp(z - z.max()).sum()) + z.max() - z[k] for k in positives))
    over = np.array([[z[j] - z[k] + 1 for k in positives] for j in negatives])
    return float(np.maximum(over, 0).sum() if loss == "triplet" else max(over.max(), 0))


@st.composite
def scores(draw: Any) -> tuple[np.ndarray, list[int], np.random.Generator]:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(2, 12))
    z = rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    if draw(st.booleans()):
        z = np.round(z)  # ties
    return z, sorted(rng.permutation(n)[: draw(st.integers(1, n - 1))].tolist()), rng


@settings(max_examples=150, deadline=None)
@given(scores(), st.sampled_from([0.1, 1.0, 5.0]))
def test_values_and_gradients_are_those_of_the_definitions(problem: Any, mu: float) -> None:
    z, positives, rng = problem
    for loss in LOSSES:
        value, gradient = loss_of_scores(loss, z, positives, mu=mu)
        expected = hard(loss, z, positives)
        if loss == "margin":  # |alpha|^2 <= 2
            assert expected - mu - 1e-9 <= value <= expected + 1e-9
        else:
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert gradient.sum() == pytest.approx(0, abs=1e-9 * max(1, len(z) ** 2))  # a shift of all scores
        # convex: the tangent lies below, whatever the kinks
        other = z + rng.normal(size=len(z))
        assert loss_of_scores(loss, other, positives, mu=mu)[0] >= value + gradient @ (other - z) - 1e-8


@pytest.mark.parametrize("loss", LOSSES)
def test_gradients_by_finite_differences(loss: str) -> None:
    rng, h = np.random.default_rng(0), 1e-6
    for _ in range(30):
        z, positives = rng.normal(size=9) * rng.choice([0.3, 3.0]), sorted(rng.permutation(9)[:2].tolist())
        weights = rng.random(2) + 0.5 if loss == "cross-entropy" else None
        gradient = loss_of_scores(loss, z, positives, weights=weights)[1]
        ahead, back = (
            [loss_of_scores(loss, z + s * h * e, positives, weights=weights)[0] for e in np.eye(9)] for s in (1, -1)
        )
        assert np.allclose((np.array(ahead) - back) / (2 * h), gradient, atol=1e-5)


def projection(a: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """Onto { >= 0 on negatives, <= 0 elsewhere, sum 0, positive part <= 1 }: the threshold by plain bisection."""
    up, down = a[negative], -a[~negative]

    def cut(v: np.ndarray, total: float) -> np.ndarray:  # projection onto the simplex of this size
        low, high = v.min() - total - 1, v.max()
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(v - middle, 0).sum() > total else (low, middle)
        return np.maximum(v - high, 0)

    low, high = 0.0, 1.0  # the total: the distance is convex in it
    for _ in range(100):
        thirds = [low + (high - low) / 3, high - (high - low) / 3]
        costs = [np.square(cut(up, t) - up).sum() + np.square(cut(down, t) - down).sum() for t in thirds]
        low, high = (low, thirds[1]) if costs[0] < costs[1] else (thirds[0], high)
    out = np.zeros(len(a))
    out[negative], out[~negative] = cut(up, low), -cut(down, low)
    return out


@pytest.mark.slow
def test_the_margins_gradient_is_a_projection() -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        z, mu = rng.normal(size=8) * rng.choice([0.2, 1.0, 4.0]), float(rng.choice([0.2, 1.0, 5.0]))
        positives = sorted(rng.permutation(8)[: rng.integers(1, 5)].tolist())
        negative = np.array([k not in positives for k in range(8)])
        gradient = loss_of_scores("margin", z, positives, mu=mu)[1]
        assert np.allclose(gradient, projection((z + negative) / mu, negative), atol=1e-6)


def problem(
    n: int = 12, labels: int = 300, d: int = 12, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, list[list[int]]]:
    """Rows in groups, samples near the rows of their labels."""
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(30, d))[rng.integers(0, 30, labels)] + 0.5 * rng.normal(size=(labels, d))) * 0.7
    positives = [sorted(rng.permutation(labels)[: rng.integers(1, 4)].tolist()) for _ in range(n)]
    x = np.array([rows[p].mean(0) for p in positives]) + 0.2 * rng.normal(size=(n, d))
    return rows.astype(np.float32), x.astype(np.float32), positives


def reference(loss: str, rows: np.ndarray, x: np.ndarray, positives: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    z = x.astype(float) @ rows.T.astype(float)
    if loss == "nca":
        z = -np.square(x[:, None].astype(float) - rows[None].astype(float)).sum(2)
        loss = "cross-entropy"
    answers = [loss_of_scores(loss, a, p) for a, p in zip(z, positives, strict=True)]
    return np.array([a[0] for a in answers]), np.array([a[1] for a in answers])


@pytest.mark.parametrize("loss", [*LOSSES, "nca"])
def test_every_method_is_exact_when_it_sees_everything(loss: str) -> None:
    rows, x, positives = problem()
    values, gradient = reference(loss, rows, x, positives)
    everything: dict[str, Any] = {"queries": len(rows)}
    for method, options in (
        ("exact", {}),
        ("sampled", everything),
        ("search", everything),
        ("search", {**everything, "candidates": 1}),
        ("decomposed", {**everything, "keep": len(rows), "blocks": 3, "candidates": len(rows)}),
        ("decomposed", {**everything, "keep": len(rows), "blocks": 3}),
        ("decomposed", {**everything, "keep": len(rows), "blocks": 1, "finish": "blocks"}),
    ):
        result = EmbeddingLoss(rows, loss, method, **options).evaluate(x, positives)
        assert np.allclose(result.values, values, rtol=1e-4, atol=1e-4), method
        assert np.allclose(result.gradient.toarray(), gradient, atol=1e-3), method
        if options.get("finish") != "blocks":
            assert set(result.claims) == {"exact"}, method


@pytest.mark.parametrize("loss", LOSSES)
def test_errors_fall_as_more_labels_are_asked_for(loss: str) -> None:
    rows, x, positives = problem(40)
    values, gradient = reference(loss, rows, x, positives)
    for method in ("search", "decomposed"):
        errors, wrong = [], []
        for queries in (2, 20, 100, 300):
            evaluated = EmbeddingLoss(rows, loss, method, queries=queries, blocks=3).evaluate(x, positives)
            errors.append(np.abs(evaluated.values - values).sum())
            wrong.append(np.abs(evaluated.gradient.toarray() - gradient).sum())
        tiny = 1e-3 * (1 + values.sum())
        assert all(b <= a + tiny for a, b in pairwise(errors)), (method, errors)
        assert wrong[-1] <= wrong[0] + tiny
        assert errors[-1] <= 0.02 * values.sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_claims_are_true(loss: str) -> None:
    rows, x, positives = problem(30, seed=3)
    values = reference(loss, rows, x, positives)[0]
    seen = set()
    for method in ("sampled", "search", "decomposed"):
        for rest in ("omit", "zero", "last"):
            for queries in (3, 40):
                options: dict[str, Any] = {"queries": queries, "rest": rest, "blocks": 3, "keep": queries}
                result = EmbeddingLoss(rows, loss, method, **options).evaluate(x, positives)
                for value, claim, truth in zip(result.values, result.claims, values, strict=True):
                    seen.add(claim)
                    slack = 1e-4 * (1 + abs(truth))
                    assert claim not in ("exact", "upper bound") or value >= truth - slack, (method, rest)
                    assert claim not in ("exact", "lower bound") or value <= truth + slack, (method, rest)
    assert {"upper bound", "lower bound", "neither"} <= seen


def test_a_margin_found_by_an_exact_search_can_be_exact() -> None:
    rows, x, positives = problem(30, seed=4)
    result = EmbeddingLoss(rows, "margin", "search", queries=60, mu=0.2).evaluate(x, positives)
    truth = [loss_of_scores("margin", z, p, mu=0.2)[0] for z, p in zip(x @ rows.T, positives, strict=True)]
    exact = np.array([claim == "exact" for claim in result.claims])
    assert exact.sum() > 20
    assert np.allclose(result.values[exact], np.array(truth)[exact], atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(scores(), st.integers(1, 5), st.sampled_from(LOSSES))
def test_any_messages_give_an_upper_bound_and_the_best_ones_the_loss(problem: Any, blocks: int, loss: str) -> None:
    z, positives, rng = problem
    parts = rng.normal(size=(blocks, len(z)))
    parts += (z - parts.sum(0)) / blocks
    messages = rng.normal(size=parts.shape)
    messages -= messages.mean(0)
    value = loss_of_scores(loss, parts.sum(0), positives)[0]
    unit = 1e-9 * max(1.0, value, np.abs(z).max() ** 2)
    assert decomposed_loss(loss, parts, messages, positives)[0] >= value - unit
    assert decomposed_loss(loss, parts, np.zeros_like(parts), positives)[0] >= value - unit
    best = parts.sum(0) / blocks - parts
    assert decomposed_loss(loss, parts, best, positives)[0] == pytest.approx(value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_with_complete_scores_bound_the_loss_and_rounds_close_in(loss: str) -> None:
    rows, x, positives = problem(10, labels=60, d=9)
    values = reference(loss, rows, x, positives)[0]
    found = []
    for rounds in (1, 3, 30):
        options: dict[str, Any] = {"queries": 60, "finish": "blocks", "keep": 0, "blocks": 3, "threshold": 0.0}
        result = EmbeddingLoss(rows, loss, "decomposed", rounds=rounds, **options).evaluate(x, positives)
        assert set(result.claims) == {"upper bound"}
        assert (result.values >= values - 1e-3 * (1 + values)).all()
        found.append(result.values.sum())
    assert found[2] <= found[0] + 1e-3
    assert found[2] == pytest.approx(values.sum(), rel=0.02)


def test_truncated_blocks_bound_the_loss_of_the_truncated_scores_only() -> None:
    """With few labels from every block, the printed form is no bound, and says so."""
    rows, x, positives = problem(30, seed=5)
    result = EmbeddingLoss(rows, "cross-entropy", "decomposed", queries=10, finish="blocks", keep=0, blocks=3).evaluate(
        x, positives
    )
    assert set(result.claims) == {"neither"}
    assert (result.values < reference("cross-entropy", rows, x, positives)[0]).any()


@pytest.mark.parametrize(
    "method", ["exact", "sampled", "search", "decomposed", "search by codes", "decomposed by codes"]
)
@pytest.mark.parametrize("loss", LOSSES)
def test_threads_change_nothing(loss: str, method: str) -> None:
    rows, x, positives = problem(50, labels=500)
    how: dict[str, Any] = {"candidates": 60} if method.endswith("codes") else {"probes": 3}
    results = [
        EmbeddingLoss(rows, loss, method.split()[0], queries=40, n_jobs=n, seed=7, **how).evaluate(x, positives)
        for n in (1, 3)
    ]
    assert (results[0].values == results[1].values).all()
    assert (results[0].gradient != results[1].gradient).nnz == 0
    assert results[0].touched == results[1].touched


@pytest.mark.parametrize("blocks", [2, 4])
def test_blocks_searched_by_codes_find_what_exact_searches_of_them_find(blocks: int) -> None:
    """Codes only choose what is scored: the loss is that of exact scores, and a lower bound."""
    rows, x, positives = problem(60, labels=3000, d=32, seed=6)
    values, gradient = reference("margin", rows, x, positives)
    options: dict[str, Any] = {"blocks": blocks, "queries": 200, "keep": 100}
    exact, codes = (
        EmbeddingLoss(rows, "margin", "decomposed", **options, **how).evaluate(x, positives)
        for how in ({}, {"candidates": 800})  # with 16 columns or fewer a bit each tells little
    )
    assert set(codes.claims) == {"lower bound"}
    assert (codes.values <= values + 1e-4).all()
    assert codes.values.sum() >= 0.99 * exact.values.sum()
    off = [np.linalg.norm(e.gradient.toarray() - gradient) / np.linalg.norm(gradient) for e in (exact, codes)]
    assert off[1] <= off[0] + 0.05 <= 0.3, off


@pytest.mark.parametrize("loss", [*LOSSES, "nca"])
@pytest.mark.parametrize("method", ["exact", "decomposed"])
def test_steps_are_gradient_descent_and_the_indexes_follow(loss: str, method: str) -> None:
    rows, x, positives = problem(5)
    before = rows.copy()
    model = EmbeddingLoss(rows, loss, method, queries=300, keep=300, blocks=3)
    gradient = model.evaluate(x, positives).gradient.toarray().astype(float)
    changed, x_gradient = model.step(0.01, x_gradient=True)
    if loss == "nca":
        expected = before - 0.02 * (gradient.T @ x - gradient.sum(0)[:, None] * before)
        backward = 2 * (gradient @ before) - 2 * gradient.sum(1, keepdims=True) * x
    else:
        expected, backward = before - 0.01 * gradient.T @ x, gradient @ before
    assert np.allclose(rows, expected, atol=1e-4)
    assert np.allclose(x_gradient, backward, atol=1e-3)
    assert set(changed) == set(np.flatnonzero((gradient != 0).any(0)))
    again = EmbeddingLoss(rows, loss, "exact").evaluate(x, positives)
    assert np.allclose(model.evaluate(x, positives).values, again.values, atol=1e-3)
    rows[:] = before
    model.refresh()
    assert np.allclose(model.evaluate(x, positives).values, reference(loss, before, x, positives)[0], atol=1e-2)


@pytest.mark.parametrize("loss", [*LOSSES, "nca"])
def test_gradients_of_rows_and_inputs_by_finite_differences(loss: str) -> None:
    """A step along the gradient changes the loss, at scores in double precision, by the gradient's square."""
    rows, x, positives = problem(4, labels=40, d=6)
    model = EmbeddingLoss(rows.copy(), loss)
    model.evaluate(x, positives)
    _, by_x = model.step(1.0, x_gradient=True)
    by_rows, h = rows.astype(float) - model.rows, 1e-5

    def value(a: np.ndarray, b: np.ndarray) -> float:
        return float(reference(loss, a, b, positives)[0].sum())

    for a, b in ((by_rows, 0 * by_x), (0 * by_rows, by_x)):
        ahead, back = (value(rows + s * h * a, x + s * h * b) for s in (1, -1))
        assert (ahead - back) / (2 * h) == pytest.approx(np.square(a).sum() + np.square(b).sum(), rel=1e-3)


def test_sampled_softmax_is_right_on_average() -> None:
    rows, x, positives = problem(4)
    values, gradient = reference("cross-entropy", rows, x, positives)
    model = EmbeddingLoss(rows, "cross-entropy", "sampled", queries=150)
    results = [model.evaluate(x, positives) for _ in range(300)]
    assert np.allclose(np.mean([r.values for r in results], 0), values, rtol=0.1)
    assert np.allclose(sum(r.gradient.toarray() for r in results) / 300, gradient, atol=0.1)


def test_bad_input() -> None:
    rows, x, positives = problem(3, labels=20, d=4)
    for wrong in (
        {"loss": "hinge"}, {"method": "guess"}, {"rest": "none"}, {"finish": "mean"}, {"mu": 0.0}, {"queries": 21},
        {"queries": 0}, {"method": "decomposed", "blocks": 5}, {"method": "decomposed", "blocks": 0}, {"rounds": 0},
        {"n_jobs": 0}, {"probes": 0}, {"candidates": 0}, {"candidates": 5, "probes": 1}, {"keep": -1},
        {"threshold": -1.0}, {"queries": 2.5}, {"blocks": "4"}, {"rounds": None}, {"seed": 0.5},
    ):  # fmt: skip
        with pytest.raises(SettingsError):
            EmbeddingLoss(rows, **wrong)
    with pytest.raises(DataError):
        EmbeddingLoss(rows.astype(float))
    with pytest.raises(FginferError):
        EmbeddingLoss(rows * np.float32(np.nan))
    model = EmbeddingLoss(rows, "margin")
    with pytest.raises(SettingsError, match="nothing evaluated"):
        model.step(0.1)
    with pytest.raises(FginferError, match="columns"):
        model.evaluate(x[:, :2], positives)
    with pytest.raises(DataError, match="3 samples"):
        model.evaluate(x, positives[:2])
    with pytest.raises(DataError, match="positive and a negative"):
        model.evaluate(x, [[], [1], [2]])
    with pytest.raises(DataError, match="positive and a negative"):
        model.evaluate(x, [list(range(20)), [1], [2]])
    with pytest.raises(FginferError, match="labels"):
        model.evaluate(x, [[20], [1], [2]])
    with pytest.raises(DataError, match="weight"):
        model.evaluate(x, [[1], [1], [2]], [[1.0], [1.0], [-2.0]])
    with pytest.raises(DataError, match="add up to 0"):
        decomposed_loss("margin", np.zeros((2, 3)), np.ones((2, 3)), [0])
    with pytest.raises(DataError):
        loss_of_scores("margin", [0.0, np.nan], [0])
    with pytest.raises(DataError):
        loss_of_scores("margin", [0.0, 1.0], [0, 1])


@pytest.mark.parametrize("spread", [0.0, 1e-3, 0.1, 3.0])
def test_margin_of_very_many_labels_is_the_projection(spread: float) -> None:
    """Scores that hardly differ, as at the start of training, leave thousands of labels with a gradient."""
    rng = np.random.default_rng(0)
    z = spread * rng.standard_normal(20_000)
    value, gradient = loss_of_scores("margin", z, [7], mu=1.0)
    others = np.delete(z + 1.0, 7)
    below, above = others.min() - 2.0, others.max()
    for _ in range(200):  # the threshold by bisection
        middle = 0.5 * (below + above)
        if np.maximum(others - middle, 0).sum() > 1:
            below = middle
        else:
            above = middle
    alpha = np.maximum(others - below, 0)
    assert gradient[7] == pytest.approx(-gradient[np.arange(20_000) != 7].sum(), abs=1e-9)
    assert np.delete(gradient, 7) == pytest.approx(alpha, abs=1e-8)
    assert value == pytest.approx(alpha @ others - 0.5 * alpha @ alpha - z[7] - 0.5, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("rounds", [1, 3])
def test_blocks_searched_together_are_those_searched_apart(loss: str, rounds: int) -> None:
    """One pass over the codes of all blocks chooses the labels that searches of the blocks choose, or better ones; the
    loss is then that of the exact scores either way. Nine blocks are too many for one pass."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((2000, 72)).astype(np.float32)
    x = (rows[:40] + rng.standard_normal((40, 72))).astype(np.float32) / 8
    positives = [[i, 100 + i] for i in range(40)]
    truth = EmbeddingLoss(rows, loss, "exact").evaluate(x, positives)
    how: dict[str, Any] = {"queries": 200, "keep": 300, "rounds": rounds, "blocks": 3}
    together = EmbeddingLoss(rows, loss, "decomposed", candidates=400, **how)
    apart = EmbeddingLoss(rows, loss, "decomposed", **how)
    assert [len(together.indexes), len(apart.indexes)] == [1, 3]
    assert len(EmbeddingLoss(rows, loss, "decomposed", candidates=400, **{**how, "blocks": 9}).indexes) == 9
    near, other = (m.evaluate(x, positives) for m in (together, apart))
    assert (near.values <= truth.values * (1 + 1e-5)).all()
    assert set(near.claims) == {"lower bound"}
    assert np.abs(near.values - truth.values).sum() <= 1.05 * np.abs(other.values - truth.values).sum() + 1e-3
    two = EmbeddingLoss(rows.copy(), loss, "decomposed", candidates=400, n_jobs=2, **how)
    for model in (together, two):
        model.values(x, np.arange(0, 82, 2), np.array(positives, np.int32).ravel(), None)
        model.step(0.1)
    after = [m.evaluate(x, positives) for m in (together, two)]
    np.testing.assert_array_equal(after[0].values, after[1].values)
    assert (after[0].gradient != after[1].gradient).nnz == 0


def test_all_scores_are_kept_apart_from_batch_to_batch() -> None:
    """The memory of one batch's scores serves the next: larger, smaller, and with other rows."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((50, 5)).astype(np.float32)
    loss = EmbeddingLoss(rows, "margin", "exact")
    for n in (3, 9, 1, 9, 20):
        x = rng.standard_normal((n, 5)).astype(np.float32)
        positives = [[int(k)] for k in rng.integers(0, 50, n)]
        fresh = EmbeddingLoss(rows, "margin", "exact").evaluate(x, positives)
        found = loss.evaluate(x, positives)
        np.testing.assert_array_equal(found.values, fresh.values)
        for i in range(n):
            z = (rows.astype(np.float64) @ x[i].astype(np.float64)).tolist()
            assert found.values[i] == pytest.approx(loss_of_scores("margin", z, positives[i])[0], abs=1e-4)
        loss.step(0.1)
        assert (rows == loss.rows).all()
