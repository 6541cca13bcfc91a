"""Structured oracles: where answers come from. The core decodes chains, trees, sets and projective parses itself;
anything else is a Python object with :meth:`Oracle.answer`."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from fginfer.learn.data import Ints, Reals
from fginfer.learn.learner import Answers, Learner


class Oracle(Protocol):
    """Finds argmax over y of <w, phi_i(y)> + loss * loss_i(y), exactly or approximately."""

    def answer(self, learner: Learner, weights: Reals, example: int, loss: float) -> Ints: ...


def decode(
    learner: Learner, oracle: Oracle | None, weights: Reals, loss: float, examples: Ints | None = None
) -> Answers:
    """Answers to several examples from the core, or one by one from an oracle."""
    if oracle is None:
        return learner.decode(weights, loss, examples)
    parts = [
        np.asarray(oracle.answer(learner, weights, int(i), loss), np.int32)
        for i in (learner.everything if examples is None else examples)
    ]
    end = np.cumsum([len(p) for p in parts], dtype=np.int64)
    labels = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    return Answers(np.ascontiguousarray(labels, np.int32), end, np.full(len(parts), np.nan))
