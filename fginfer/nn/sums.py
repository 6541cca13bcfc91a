"""Elimination of a whole batch at once in numpy: best labelings, log Z, and marginals of labels and states."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fginfer.nn.plan import Plan, Step
from fginfer.nn.scores import Moments, Scores
from fginfer.nn.structure import Reals

Tables = list[Reals | None]


def live_tables(scores: Scores) -> Tables:
    """All tables that take part: unaries, factors, and a place for each message."""
    s = scores.structure
    begin = s.label_begin.tolist()
    own = [scores.unaries[:, a:b] for a, b in pairwise(begin)]
    where, found = s.table_begin.tolist(), []
    for f, t in enumerate(s.table_ids.tolist()):
        table = scores.tables[:, where[t] : where[t + 1]]
        if scores.weights is not None:
            table = table * scores.weights[:, f, None]
        found.append(table.reshape(-1, *s.table_shapes[t]))
    return [*own, *found, *([None] * s.n_variables)]


def _joint(step: Step, live: Tables) -> Reals:
    """The sum of what a step adds up: (batch, labels of its variables)."""
    total: Reals | None = None
    for m in step.members:
        table = live[m.number]
        assert table is not None
        part = table.transpose((0, *(q + 1 for q in m.order))).reshape(-1, *m.shape)
        total = part if total is None else total + part
    assert total is not None
    return np.broadcast_to(total, (len(total), *step.shape))


def best_labels(scores: Scores, plan: Plan) -> tuple[NDArray[np.int32], Reals]:
    """A best labeling of each item, and its score (-inf: none is allowed)."""
    live, batch = live_tables(scores), scores.batch
    first = scores.structure.n_variables + scores.structure.n_factors
    arguments, value = [], np.zeros(batch)
    for k, step in enumerate(plan.steps):
        joint = _joint(step, live)
        arguments.append(joint.argmax(-1))
        live[first + k] = message = joint.max(-1)
        if message.ndim == 1:
            value = value + message
    labels, rows = np.zeros((batch, scores.structure.n_variables), np.int32), np.arange(batch)
    for step, chosen in zip(reversed(plan.steps), reversed(arguments), strict=True):
        at = (rows if len(chosen) == batch else rows * 0, *(labels[:, u] for u in step.scope[:-1]))
        labels[:, step.variable] = chosen[at]
    return labels, value


def log_sums(scores: Scores, plan: Plan) -> tuple[Reals, Tables, list[Reals]]:
    """log Z of each item (-inf: no labeling is allowed), and what the way back needs."""
    live = live_tables(scores)
    first = scores.structure.n_variables + scores.structure.n_factors
    log_z, joints = np.zeros(scores.batch), []
    for k, step in enumerate(plan.steps):
        joint = _joint(step, live)
        top = joint.max(-1)
        safe = np.where(np.isneginf(top), 0.0, top)
        with np.errstate(divide="ignore"):
            message = safe + np.log(np.exp(joint - safe[..., None]).sum(-1))
        joints.append(joint)
        live[first + k] = message
        if message.ndim == 1:
            log_z = log_z + message
    return log_z, live, joints


def marginals(scores: Scores, plan: Plan) -> tuple[Reals, Moments]:
    """log Z, and the probabilities of labels and of states of factors."""
    s = scores.structure
    log_z, live, joints = log_sums(scores, plan)
    first, batch = s.n_variables + s.n_factors, scores.batch
    found: Tables = [None] * len(live)
    for k, step in reversed(list(enumerate(plan.steps))):
        message = live[first + k]
        assert message is not None
        safe = np.where(np.isneginf(message), 0.0, message)
        p = np.exp(joints[k] - safe[..., None])
        weight = found[first + k]
        p = p if weight is None else p * weight[..., None]
        for m in step.members:
            part = p.sum(tuple(a + 1 for a in m.sums)) if m.sums else p
            back = np.argsort(m.order)
            found[m.number] = part.transpose((0, *(q + 1 for q in back)))
    flat = [_rows(p, batch) for p in found[:first]]
    labels = np.concatenate(flat[: s.n_variables], 1) if s.n_variables else np.zeros((batch, 0))
    states = np.concatenate(flat[s.n_variables :], 1) if s.n_factors else np.zeros((batch, 0))
    return log_z, Moments(labels, states)


def _rows(p: Reals | None, batch: int) -> Reals:
    assert p is not None
    rows = p.reshape(len(p), -1)
    return rows if len(rows) == batch else np.broadcast_to(rows, (batch, rows.shape[1]))
