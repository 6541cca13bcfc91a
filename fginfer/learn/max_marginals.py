"""Max-marginals: for every token and label the score of the best labeling in which the token has that label."""

from __future__ import annotations

from typing import Any

import numpy as np

from fginfer.core.learn import Edges
from fginfer.learn.data.examples import Encoded, Ints, Reals
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import edges_of


def max_marginals(learner: Learner, weights: Any, tables: Reals, answers: list[Ints]) -> Reals:
    """(tokens, labels) of all examples. `tables`: of the pairwise features. The largest of every row is the score of
    the best labeling, and belongs to its label; -inf where a label is no candidate. On graphs with cycles the other
    tokens have the labels of the answer instead of the best ones."""
    data = learner.data
    out = [_of_example(learner, weights, tables, i, answers[i]) for i in range(data.n_examples)]
    return np.concatenate(out)


def _of_example(learner: Learner, weights: Any, tables: Reals, example: int, answer: Ints) -> Reals:
    scores: Reals = _spread(learner.data, learner.token_scores(weights, example), example)
    pairs, rows = edges_of(learner.data, example)
    if learner.data.edges == Edges.NONE or not len(pairs):
        return _independent(scores)

    def table(edge: int) -> Reals:
        if rows is None:
            return np.asarray(tables[0])
        part = rows[edge]
        mixed: Reals = np.tensordot(part.data, tables[part.indices], 1) if part.nnz else np.zeros(tables.shape[1:])
        return mixed

    order = _forest(len(scores), pairs)
    if order is None:
        return _given_the_rest(scores, pairs, table, answer)
    return _by_messages(scores, pairs, table, order)


def _independent(scores: Reals) -> Reals:
    best = scores.max(axis=1)
    out: Reals = scores + (best.sum() - best)[:, None]
    return out


def _spread(data: Encoded, scores: Reals, example: int) -> Reals:
    """Scores of candidates, packed to the left, at their labels."""
    if data.choice_begin is None or data.choice is None:
        return scores
    first, out = data.token_begin[example], np.full(scores.shape, -np.inf)
    for t in range(len(scores)):
        allowed = data.choice[data.choice_begin[first + t] : data.choice_begin[first + t + 1]]
        out[t, allowed] = scores[t, : len(allowed)]
    return out


def _forest(n: int, pairs: Any) -> list[tuple[int, int, int]] | None:
    """(token, parent, edge to it), every parent before its children, roots with -1; None if there is a cycle."""
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (u, v) in enumerate(pairs):
        near[u].append((int(v), e))
        near[v].append((int(u), e))
    order: list[tuple[int, int, int]] = []
    seen = np.zeros(n, bool)
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order.append((root, -1, -1))
        at = len(order) - 1
        while at < len(order):
            token, _, above = order[at]
            for other, e in near[token]:
                if e == above:
                    continue
                if seen[other]:
                    return None
                seen[other] = True
                order.append((other, token, e))
            at += 1
    return order


def _by_messages(scores: Reals, pairs: Any, table: Any, order: list[tuple[int, int, int]]) -> Reals:
    """Up to the roots and down again: a token's max-marginals are its scores and the messages of its neighbours."""
    up: dict[int, Reals] = {}
    inside = scores.copy()

    def oriented(token: int, edge: int) -> Reals:
        """Rows: labels of the child."""
        t: Reals = table(edge)
        return t if int(pairs[edge][0]) == token else t.T

    for token, parent, edge in reversed(order):
        if parent >= 0:
            up[token] = (inside[token][:, None] + oriented(token, edge)).max(axis=0)
            inside[parent] += up[token]
    whole = inside.copy()
    roots: list[int] = []
    owner = np.zeros(len(scores), np.int64)
    for token, parent, edge in order:
        if parent < 0:
            owner[token] = len(roots)
            roots.append(token)
            continue
        owner[token] = owner[parent]
        with np.errstate(invalid="ignore"):
            rest = whole[parent] - up[token]
        rest = np.where(np.isnan(rest), -np.inf, rest)
        whole[token] = inside[token] + (rest[None, :] + oriented(token, edge)).max(axis=1)
    best = np.array([inside[root].max() for root in roots])
    whole += (best.sum() - best)[owner][:, None]  # trees of a forest do not see each other
    return whole


def _given_the_rest(scores: Reals, pairs: Any, table: Any, answer: Ints) -> Reals:
    out = scores.copy()
    total = float(scores[np.arange(len(answer)), answer].sum())
    for e, (u, v) in enumerate(pairs):
        t = table(e)
        total += t[answer[u], answer[v]]
        out[u] += t[:, answer[v]]
        out[v] += t[answer[u], :]
    return out + (total - out[np.arange(len(answer)), answer])[:, None]
