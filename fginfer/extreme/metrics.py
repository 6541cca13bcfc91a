"""How good ranked labels are: P@k, nDCG@k and their propensity-scored form, and F1 of label sets.

Truth is a :class:`~fginfer.core.extreme.Lines` of label numbers, answers are arrays of k label numbers a row, best
first (-1: none). Rows without a label count as rows on which nothing can be right, except for nDCG and PSP, which leave
them out. Definitions: Prabhu and Varma, "FastXML" (2014); Jain, Prabhu and Varma, "Extreme multi-label loss functions"
(2016).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fginfer.core.arrays import owners
from fginfer.core.extreme import Lines

Reals = NDArray[np.float64]


def hits(truth: Lines, answers: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the answers are right."""
    width = max(truth.width, int(answers.max(initial=-1)) + 1, 1)
    rows = owners(truth.begin)
    keys = rows * width + truth.index  # ascending, as rows and labels are
    asked = np.arange(truth.n, dtype=np.int64)[:, None] * width + answers
    if not len(keys):
        return np.zeros(answers.shape, bool)
    place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    right: NDArray[np.bool_] = (keys[place] == asked) & (answers >= 0)
    return right


def precision_at(truth: Lines, answers: NDArray[Any], k: int) -> float:
    """P@k: the share of right ones among the first k answers."""
    return float(hits(truth, answers[:, :k]).sum() / (max(1, truth.n) * k))


def ndcg_at(truth: Lines, answers: NDArray[Any], k: int) -> float:
    """nDCG@k: right answers count 1 / log2(place + 1), relative to the best possible order."""
    gain = 1.0 / np.log2(np.arange(2, k + 2))
    best = np.concatenate([[0.0], np.cumsum(gain)])
    counts = np.minimum(np.diff(truth.begin), k)
    found = hits(truth, answers[:, :k]) @ gain[: answers[:, :k].shape[1]]
    with_labels = counts > 0
    return float(np.mean(found[with_labels] / best[counts[with_labels]])) if with_labels.any() else 0.0


def propensities(positives: NDArray[Any], rows: int, a: float = 0.55, b: float = 1.5) -> Reals:
    """The chance that a label that fits was recorded, from how often labels occur in `rows` training rows."""
    c = (np.log(max(2, rows)) - 1.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + c * np.exp(-a * np.log(np.asarray(positives, float) + b))))


def psp_at(truth: Lines, answers: NDArray[Any], k: int, propensity: Reals) -> float:
    """Propensity-scored P@k, relative to the best possible answer: rare labels count more."""
    inverse = 1.0 / propensity
    right = hits(truth, answers[:, :k])
    found = float((right * np.where(answers[:, :k] >= 0, inverse[answers[:, :k]], 0.0)).sum())
    values = inverse[truth.index]
    order = np.lexsort((-values, owners(truth.begin)))
    place = np.arange(len(values)) - np.repeat(truth.begin[:-1], np.diff(truth.begin))
    best = float(values[order][place < k].sum())
    return found / best if best > 0.0 else 0.0


def f1_scores(truth: Lines, answer: Lines) -> dict[str, float]:
    """Micro-F1 over all labels of all rows, macro-F1 over the labels that occur in truth or answer."""
    width = max(truth.width, answer.width)

    def keys(lines: Lines) -> NDArray[np.int64]:
        return np.asarray(owners(lines.begin) * width + lines.index)

    right = np.intersect1d(keys(truth), keys(answer), assume_unique=True) % width
    good, true, said = (
        np.bincount(labels, minlength=width).astype(float) for labels in (right, truth.index, answer.index)
    )
    seen = true + said > 0
    macro = float(np.mean(2.0 * good[seen] / (true + said)[seen])) if seen.any() else 0.0
    return {"micro_f1": float(2.0 * good.sum() / max(1.0, (true + said).sum())), "macro_f1": macro}


def report(
    truth: Lines, answers: NDArray[Any], propensity: Reals | None = None, at: tuple[int, ...] = (1, 3, 5)
) -> dict[str, float]:
    """P@k and nDCG@k (and PSP@k) for the k in `at` that the answers reach."""
    reached = [k for k in at if k <= answers.shape[1]]
    out = {f"p@{k}": precision_at(truth, answers, k) for k in reached}
    out.update({f"ndcg@{k}": ndcg_at(truth, answers, k) for k in reached})
    if propensity is not None:
        out.update({f"psp@{k}": psp_at(truth, answers, k, propensity) for k in reached})
    return out
