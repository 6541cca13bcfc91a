"""Losses over many labels whose scores are inner products, z_k = <row_k, x>: values and sparse gradients of batches.

    cross-entropy   sum over positive k of log sum_j exp z_j - z_k
    margin          [largest negative score - lowest positive score + 1]_+, smoothed by mu
    triplet         sum over positive k, negative j of [z_j - z_k + 1]_+
    nca             cross-entropy of the scores -|x - row_k|^2: the rows are proxies of the labels

from all scores ("exact"), from the positives and a uniform sample of the rest ("sampled"), from the labels that a
search for large inner products finds ("search"), or from searches in blocks of the coordinates, joined by messages
("decomposed"). After Yan 2018, section 3.3, whose Algorithms 10 and 11 are the last two.

>>> rows = np.eye(4, dtype=np.float32)
>>> loss = EmbeddingLoss(rows, "margin", "search", queries=2)
>>> result = loss.evaluate([[0.0, 3.0, 2.5, 0.0]], [[1]])
>>> result.values.round(3).tolist(), result.claims, result.gradient.toarray().round(2).tolist()
([0.062], ['exact'], [[0.0, -0.25, 0.25, 0.0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from fginfer.core.arrays import begins
from fginfer.core.losses import CLAIMS, LOSSES, METHODS, RESTS, LossBatch, LossHandle, block_cuts, loss_settings
from fginfer.core.losses import loss_of_scores as core_loss_of_scores
from fginfer.core.search import MOST_PARTS, Floats
from fginfer.errors import DataError, SettingsError
from fginfer.options import check_count, check_number
from fginfer.search import SearchIndex
from fginfer.search_questions import as_labels, as_rows, check_seed, check_threads, check_way


class LossKind(NamedTuple):
    """A loss: what the core calls it, and whether rows are proxies, scored by their distance from x."""

    core: int
    proxies: bool = False


class LabelChoice(NamedTuple):
    """A method: which labels are looked at."""

    all_labels: bool = False  # one product of matrices scores them
    indexed: bool = False  # those that a search finds get scores
    by_blocks: bool = False  # there is one search for each block of columns


KINDS = {
    **{name: LossKind(int(core)) for name, core in LOSSES.items()},
    "nca": LossKind(int(LOSSES["cross-entropy"]), True),
}
NAMES = tuple(KINDS)
WAYS = {
    "exact": LabelChoice(all_labels=True),
    "sampled": LabelChoice(),
    "search": LabelChoice(indexed=True),
    "decomposed": LabelChoice(indexed=True, by_blocks=True),
}


@dataclass(frozen=True)
class Evaluation:
    """A batch: values; what each of them is ("exact", "upper bound", "lower bound" or "neither" of the loss at all
    scores); the gradient with respect to the scores, (samples, labels); how many inner products it took; and the
    gradient of each label that was not looked at, where `rest` gives these a score."""

    values: NDArray[np.float64]
    claims: list[str]
    gradient: sp.csr_matrix
    touched: int
    rest: NDArray[np.float64]


def loss_of_scores(
    loss: str, scores: ArrayLike, positives: ArrayLike, *, mu: float = 1.0, weights: ArrayLike | None = None
) -> tuple[float, NDArray[np.float64]]:
    """(value, gradient) at one vector of scores.

    >>> value, gradient = loss_of_scores("margin", [0.0, 3.0, 2.5], [1])
    >>> round(value, 4), gradient.round(3).tolist()
    (0.0625, [0.0, -0.25, 0.25])
    """
    z = _numbers("scores", scores, 1)
    which = as_labels(positives, len(z))
    order = np.argsort(which, kind="stable")
    which = np.ascontiguousarray(which[order])
    if not 0 < len(which) < len(z) or (which[1:] == which[:-1]).any():
        raise DataError("positives must be distinct labels, some but not all")
    given = None if weights is None else _numbers("weights", weights, 1)
    if given is not None:
        if given.shape != which.shape or not (given >= 0).all():
            raise DataError("weights must be non-negative, one for each positive")
        given = np.ascontiguousarray(given[order])
    settings = loss_settings(loss=_loss_kind(loss), mu=_positive("mu", mu))
    return core_loss_of_scores(settings, z, which, given)


def decomposed_loss(
    loss: str, blocks: ArrayLike, messages: ArrayLike, positives: ArrayLike, *, mu: float = 1.0
) -> tuple[float, NDArray[np.float64]]:
    """(1/B) sum_j L(B (z_j + lambda_j)) and its mean gradient, for blocks of complete scores z_j, (B, labels), and
    messages lambda_j that add up to 0: an upper bound on L(sum_j z_j), equal to it at lambda_j = sum z / B - z_j."""
    z, moved = _numbers("blocks", blocks, 2), _numbers("messages", messages, 2)
    if not len(z) or z.shape != moved.shape:
        raise DataError("blocks and messages must be tables of the same shape, one row per block")
    if np.abs(moved.sum(0)).max(initial=0.0) > 1e-9 * (1.0 + np.abs(moved).max(initial=0.0)):
        raise DataError("the messages of a label must add up to 0")
    answers = [loss_of_scores(loss, len(z) * (a + b), positives, mu=mu) for a, b in zip(z, moved, strict=True)]
    return float(np.mean([a[0] for a in answers])), np.mean([a[1] for a in answers], axis=0)


def proxies_as_rows(proxies: Floats) -> Floats:
    """Rows whose inner products with (x, 1) are |x|^2 - |x - proxy|^2: the |x|^2 cancels in a cross-entropy."""
    return np.hstack([2 * proxies, -np.square(proxies).sum(1, keepdims=True)]).astype(np.float32)


def _check_rows(rows: Any) -> None:
    if not isinstance(rows, np.ndarray) or rows.dtype != np.float32 or not rows.flags.c_contiguous:
        raise DataError("rows must be a float32 array in C order")
    as_rows(rows)


def _check_choices(loss: str, method: str, rest: str, finish: str) -> None:
    _choice("loss", loss, NAMES)
    _choice("method", method, METHODS)
    _choice("rest", rest, RESTS)
    _choice("finish", finish, ("union", "blocks"))


class EmbeddingLoss:
    """A loss over the rows of one table, which it may change; with the indexes that its method needs.

    Parameters
    ----------
    rows : (labels, columns) float32, C order; kept, not copied: whoever changes it calls :meth:`refresh`.
    loss : "cross-entropy", "margin", "triplet" or "nca". mu : smoothing of the margin.
    method : "exact", "sampled", "search" or "decomposed".
    queries : labels that every search returns, or size of the sample; None is a hundredth of the labels, at least 100.
    probes : clusters that a search visits; None searches exactly (and falls back to scans where that does not pay).
    candidates : searches by codes instead, see :meth:`fginfer.search.SearchIndex.search`; `queries` at least. They need
        no clusters, and find more of the best rows where these are not clustered. Up to 8 blocks are then searched in
        one pass, and have scores from a byte a column, which choose what is scored exactly (unless `finish` is
        "blocks").
    clusters : of every index; None takes as many as `queries` allows: rows / clusters <= queries, clusters <= queries.
    rest : what labels stand for that were not looked at: "omit" (nothing: a lower bound), "zero" (score 0, as in the
        paper), "last" (the lowest score found: an upper bound if the search is exact), "moments" (one with which their
        exponentials add up as those of normally distributed scores would: mean + variance / 2).
    blocks, rounds : of Algorithm 11. The more blocks, the more labels (`queries`) each has to return: the best label of
        all need not be near the top of any. Where searches visit clusters (probes), 4 blocks err less than one search
        in the same time on rows with families, and more on rows without; a plain search by codes (candidates) finds the
        margin to four digits in less time than either (`bench inner_products --part loss`). threshold : gradients
        of a block above it get messages; None is 0, and 1e-4 for cross-entropy. keep : besides, so many labels with the
        largest sums of block scores are scored exactly; None is half of `queries`. finish : "union", the loss at the
        exact scores of all these labels, or "blocks", the mean of the blocks' losses as printed in the paper.
    """

    def __init__(
        self,
        rows: Floats,
        loss: str = "cross-entropy",
        method: str = "exact",
        *,
        mu: float = 1.0,
        queries: int | None = None,
        probes: int | None = None,
        candidates: int | None = None,
        clusters: int | None = None,
        rest: str = "omit",
        blocks: int = 4,
        rounds: int = 1,
        threshold: float | None = None,
        keep: int | None = None,
        finish: str = "union",
        n_jobs: int = 1,
        seed: int = 0,
    ) -> None:
        _check_rows(rows)
        _check_choices(loss, method, rest, finish)
        optional = {"queries": queries, "clusters": clusters, "keep": keep}
        given = {name: value for name, value in optional.items() if value is not None}
        for name, value in {**given, "blocks": blocks, "rounds": rounds}.items():
            check_count(name, value)
        check_seed(seed)
        check_threads(n_jobs)
        if threshold is not None:
            check_number("threshold", threshold)
        self.rows, self.loss, self.method = rows, loss, method
        self._kind, self._way = KINDS[loss], WAYS[method]
        self.queries = min(max(100, len(rows) // 100), len(rows)) if queries is None else queries
        if not 1 <= self.queries <= len(rows):
            raise SettingsError(f"queries must lie in 1 .. {len(rows)}, the number of labels, not {queries!r}")
        self._table = proxies_as_rows(rows) if self._kind.proxies else rows
        if self._way.by_blocks and not 1 <= blocks <= self._table.shape[1]:
            raise SettingsError(
                f"blocks must lie in 1 .. {self._table.shape[1]}, the number of columns, not {blocks!r}"
            )
        width = self._table.shape[1]
        self._cuts = block_cuts(width, blocks) if self._way.by_blocks else [0, width]
        if threshold is None:
            threshold = 1e-4 if self._kind.core == LOSSES["cross-entropy"] else 0.0
        check_way(probes, candidates)
        by_codes = candidates is not None
        together = by_codes and self._way.by_blocks and finish == "union" and blocks <= MOST_PARTS
        settings = loss_settings(
            loss=self._kind.core, method=METHODS[method], mu=_positive("mu", mu), want=self.queries, probes=probes or 0,
            candidates=min(candidates or 0, len(rows)),
            rest=RESTS[rest], blocks=blocks, rounds=rounds, threshold=threshold, threads=n_jobs, seed=seed,
            keep=(self.queries + 1) // 2 if keep is None else keep, joined=int(finish == "union"),
            together=int(together),
        )  # fmt: skip
        self._handle = LossHandle(settings)
        if together:
            self._cuts = [0, width]
        if by_codes:
            clusters = 1
        elif clusters is None:
            clusters = max(1, min(self.queries, -(-len(rows) // self.queries)))
        options = {"clusters": clusters, "threads": n_jobs, "seed": seed, "parts": blocks if together else 1}
        self.indexes = self._make_indexes(options) if self._way.indexed else []
        self._rest, self._changed = rest, 0

    _moments: tuple[Floats, Floats] | None = None  # moments of all rows, once somebody has asked
    _batch: LossBatch | None = None  # the batch of the last `values`
    _x: Floats | None = None  # what that batch was asked about
    _scores: Floats | None = None  # all scores of that batch, where they were made

    def _make_indexes(self, options: dict[str, Any]) -> list[SearchIndex]:
        """One for each block of columns."""
        pieces = [self._table[:, a:b] for a, b in zip(self._cuts[:-1], self._cuts[1:], strict=True)]
        return [SearchIndex(p, **options) for p in pieces]

    # ---- evaluation

    def values(
        self, x: Floats, begin: NDArray[np.int64], positives: NDArray[np.int32], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """(values, claims as the core numbers them) of samples in flat arrays; :meth:`step` and the gradient follow."""
        self._x = x
        given = np.hstack([x, np.ones((len(x), 1), np.float32)]) if self._kind.proxies else x
        scores = self._all_scores(given) if self._way.all_labels else None
        handles = [index.handle for index in self.indexes]
        self._batch = LossBatch(self._table, given, begin, positives, weights, scores, handles, self._row_moments())
        return self._handle.run(self._batch)

    def _all_scores(self, x: Floats) -> Floats:
        """The scores of all labels, where those of the last batch were."""
        if self._scores is None or len(self._scores) < len(x):
            self._scores = np.empty((len(x), len(self._table)), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # the core tells
            return np.matmul(x, self._table.T, out=self._scores[: len(x)])

    def _row_moments(self) -> tuple[Floats, Floats] | None:
        """Sums of the rows and of their products, made anew when a tenth of the rows has changed."""
        if self._rest != "moments":
            return None
        if self._moments is None or self._changed > len(self.rows) / 10:
            self._moments = (self._table.sum(0, dtype=np.float64).astype(np.float32), self._table.T @ self._table)
            self._changed = 0
        return self._moments

    def evaluate(self, x: ArrayLike, positives: Sequence[Any], weights: Sequence[Any] | None = None) -> Evaluation:
        """Values and gradients of samples x, (samples, columns), each with a list of positive labels."""
        given = np.ascontiguousarray(as_rows(x, self.rows.shape[1], "x"))
        begin, flat, q = flat_positives(positives, len(given), len(self.rows), weights)
        before = self.touched
        values, claims = self.values(given, begin, flat, q)
        return Evaluation(values, [CLAIMS[int(c)] for c in claims], self.gradient(), self.touched - before, self.rest())

    def gradient(self) -> sp.csr_matrix:
        """The gradient of the last evaluation, with respect to the scores."""
        begin, labels, values = self._handle.gradient()
        return sp.csr_matrix((values, labels, begin), shape=(len(begin) - 1, len(self.rows)))

    def rest(self) -> NDArray[np.float64]:
        """The last gradient of each label that was not looked at: a number for each sample."""
        return self._handle.rest()

    @property
    def touched(self) -> int:
        """Inner products computed so far, by searches (each of one block's length) and beside them."""
        return self._handle.touched() + sum(index.counts.rows_touched for index in self.indexes)

    # ---- steps

    def step(self, size: float, x_gradient: bool = False) -> tuple[NDArray[np.int32], Floats | None]:
        """rows -= size * the gradient of the last evaluation, summed over its samples (labels looked at only), and the
        indexes follow. The labels that changed, and, when asked, the gradients with respect to x."""
        if self._batch is None or self._x is None:
            raise SettingsError("there is nothing evaluated yet")
        check_number("size", size)
        if not np.isfinite(size):
            raise SettingsError(f"size must be finite, not {size!r}")
        if self._kind.proxies:
            return self._step_proxies(size, x_gradient)
        out = np.empty(self._x.shape, np.float32) if x_gradient else None
        changed = self._handle.step(self._batch, self.rows, size, out)
        self._reindex(changed)
        return changed, out

    def _step_proxies(self, size: float, x_gradient: bool) -> tuple[NDArray[np.int32], Floats | None]:
        """The score -|x - y|^2 has the gradient 2 (x - y) in y, and the reverse in x."""
        assert self._x is not None
        g, x, y = self.gradient(), self._x, self.rows
        out = (2 * (g @ y) - 2 * np.asarray(g.sum(1)) * x).astype(np.float32) if x_gradient else None
        changed = np.unique(g.indices)
        part = g[:, changed].T.tocsr()
        y[changed] -= np.float32(2 * size) * (part @ x - np.asarray(part.sum(1)) * y[changed])
        self.refresh(changed)
        return changed.astype(np.int32), out

    def refresh(self, labels: ArrayLike | None = None) -> None:
        """Rows (all, or those listed) have been changed from outside."""
        which = np.arange(len(self.rows), dtype=np.int32) if labels is None else as_labels(labels, len(self.rows))
        if self._kind.proxies:
            self._table[which] = proxies_as_rows(self.rows[which])
        self._reindex(which)

    def _reindex(self, labels: NDArray[np.int32]) -> None:
        self._changed += len(labels)
        for index, a, b in zip(self.indexes, self._cuts[:-1], self._cuts[1:], strict=bool(self.indexes)):
            index.handle.refresh(labels, self._table[:, a:b])


def flat_positives(
    positives: Sequence[Any], n: int, n_labels: int, weights: Sequence[Any] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64] | None]:
    """Lists of labels (and weights) as offsets and flat arrays, ascending for each sample."""
    if not hasattr(positives, "__len__") or len(positives) != n:
        many = len(positives) if hasattr(positives, "__len__") else "no"
        raise DataError(f"{n} samples, but {many} lists of labels")
    parts = [as_labels(p, n_labels) for p in positives]
    if weights is None:
        parts = [np.unique(p) for p in parts]
        flat_weights = None
    else:
        orders = [np.argsort(p, kind="stable") for p in parts]
        given = [_numbers("weights", np.atleast_1d(np.asarray(q)), 1) for q in weights]
        if [len(q) for q in given] != [len(p) for p in parts]:
            raise DataError("one weight is needed for each positive label")
        parts = [p[o] for p, o in zip(parts, orders, strict=True)]
        flat_weights = np.concatenate([np.zeros(0), *(q[o] for q, o in zip(given, orders, strict=True))])
        if not (flat_weights >= 0).all():
            raise DataError("weights must not be negative")
    begin = begins([len(p) for p in parts])
    return begin, np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32), flat_weights


def _numbers(name: str, values: ArrayLike, dimensions: int) -> NDArray[np.float64]:
    try:
        given = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError):
        given = np.full((), np.nan)
    if given.ndim != dimensions or not np.isfinite(given).all():
        raise DataError(f"{name} must be a {'flat array' if dimensions == 1 else 'table'} of finite numbers")
    return given


def _loss_kind(loss: str) -> int:
    _choice("loss", loss, NAMES)
    return KINDS[loss].core


def _choice(name: str, value: Any, known: Any) -> None:
    if value not in list(known):
        raise SettingsError(f"{name} must be one of {', '.join(known)}, not {value!r}")


def _positive(name: str, value: float) -> float:
    check_number(name, value, "a positive number")
    if not 0 < value < np.inf:
        raise SettingsError(f"{name} must be a positive number, not {value!r}")
    return float(value)
