"""Data and oracles of learning_papers.py: synthetic word alignments, tags and spans of a treebank, beams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.learn import learning_data as sets
from fginfer.core.learn import Edges, Kind
from fginfer.learn.data.encode import encode
from fginfer.learn.data.examples import Encoded
from fginfer.learn.data.features import WindowFeatures
from fginfer.learn.data.readers import read_conllu
from fginfer.learn.oracle import MatchingOracle


def alignment(n: int, seed: int) -> Encoded:
    """Sentence pairs: every word of one takes a different word of the other, or none (alternative 0).

    Features as in Taskar et al. 2006, made up: an association score that is noisy, whether the words look alike,
    distance of the relative positions (also squared), whether neighbours associate, a bias, and one for no word.
    """
    rng = np.random.default_rng(seed)
    rows, counts, truth, begin = [], [], [], [0]
    for _ in range(n):
        length, other = rng.integers(8, 21), rng.integers(10, 21)
        order = np.argsort(np.arange(max(length, other)) + rng.normal(scale=2.0, size=max(length, other)))[:length]
        target = np.where((order < other) & (rng.random(length) > 0.1), order, -1)
        match = np.zeros((length, other))
        match[np.flatnonzero(target >= 0), target[target >= 0]] = 1
        score = match * rng.beta(3, 3, match.shape) + (1 - match) * rng.beta(1.2, 6, match.shape)
        alike = (rng.random(match.shape) < 0.3 * match + 0.02).astype(float)
        far = np.abs(np.arange(length)[:, None] / length - np.arange(other)[None, :] / other)
        around = np.zeros_like(score)
        around[1:, 1:] += score[:-1, :-1]
        around[:-1, :-1] += score[1:, 1:]
        pairs = np.stack([score, alike, far, far**2, around, np.ones_like(score), np.zeros_like(score)], axis=2)
        none = np.zeros((length, 1, pairs.shape[2]))
        none[:, 0, -1] = 1
        rows.append(np.concatenate([none, pairs], axis=1).reshape(-1, pairs.shape[2]))
        counts += [other + 1] * length
        truth += (target + 1).tolist()
        begin.append(begin[-1] + int(length))
    choices = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    features = sp.csr_matrix(np.concatenate(rows))
    return Encoded(
        Kind.CHOICES,
        Edges.NONE,
        np.array(begin, np.int64),
        features,
        0,
        np.array(truth, np.int32),
        choice_begin=choices,
    )


class AlignmentOracle(MatchingOracle):
    """Matchings in which a word may stay alone."""

    def __init__(self) -> None:
        super().__init__(null=True)


class Beam:
    """Chains: the best answer among `width` beginnings that are kept at every token. Notes how good its answers are."""

    exact = False

    def __init__(self, width: int) -> None:
        self.width, self._reached, self._best = width, 0.0, 0.0

    def answer(self, learner: Any, weights: Any, example: int, loss: float) -> Any:
        exact = learner.decode(weights, loss, np.array([example], np.int32))
        if loss == 0.0:
            return exact.split()[0]
        scores = learner.token_scores(weights, example, loss)
        table = np.asarray(weights)[learner.n_unary :].reshape(scores.shape[1], -1)
        kept, value, back = np.argsort(-scores[0])[: self.width], None, []
        value = scores[0][kept]
        for t in range(1, len(scores)):
            total = value[:, None] + table[kept]
            come = total.argmax(axis=0)
            reach = total.max(axis=0) + scores[t]
            now = np.argsort(-reach)[: self.width]
            back.append((kept, come))
            kept, value = now, reach[now]
        label = int(kept[np.argmax(value)])
        answer = [label]
        for before, come in reversed(back):
            label = int(before[come[label]])
            answer.append(label)
        found = np.array(answer[::-1], np.int32)
        truth = learner.data.truth[learner.data.token_begin[example] : learner.data.token_begin[example + 1]]
        base = sum(learner.score(weights, example, truth))
        score, own = learner.score(weights, example, found)
        self._reached += max(0.0, score + loss * own - base)
        self._best += max(0.0, float(exact.value[0]) - base)
        return found

    def accuracy(self) -> float:
        """Hinge losses of the answers over those of the best answers."""
        return self._reached / self._best if self._best else 1.0


def tagging(folder: Path, n: int) -> sets.Task:
    """Words to XPOS tags, with affixes; n sentences of the training part."""
    parts = [read_conllu(folder / "ud_en_ewt" / f"{part}.conllu.gz") for part in ("train", "test")]
    parts[0] = parts[0][:n]
    features = WindowFeatures(("0[-1]", "0[0]", "0[1]", "0[-1]|0[0]", "0[0]|0[1]"), 1, 3)
    words = [[[[t[1]] for t in s] for s in part] for part in parts]
    tags = [[[t[4] for t in s] for s in part] for part in parts]
    features.fit(words[0])
    known = {t for s in tags[0] for t in s}
    X, offsets = features.transform(words[0])
    train, classes = encode("chain", X, np.array([t for s in tags[0] for t in s]), offsets=offsets, intercept=False)
    X, offsets = features.transform(words[1])
    flat = np.array([t if t in known else "NN" for s in tags[1] for t in s])
    test, _ = encode("chain", X, flat, offsets=offsets, classes=classes, intercept=False)
    return sets.Task(train, test, classes)


def proper_nouns(folder: Path) -> tuple[Encoded, Encoded, Any, list[list[str]]]:
    """(train, test, labels, true labels of the test): runs of PROPN as spans, from words alone."""
    parts = [read_conllu(folder / "ud_en_ewt" / f"{part}.conllu.gz") for part in ("train", "test")]
    parts[0] = [s for s in parts[0] if any(t[3] == "PROPN" for t in s)][:3000]
    words = [[[[t[1]] for t in s] for s in part] for part in parts]
    spans = [[spans_of([t[3] for t in s]) for s in part] for part in parts]
    features = WindowFeatures(("0[-2]", "0[-1]", "0[0]", "0[1]", "0[2]", "0[-1]|0[0]", "0[0]|0[1]"), 1, 3).fit(words[0])
    X, offsets = features.transform(words[0])
    train, classes = encode("chain", X, np.array([y for s in spans[0] for y in s]), offsets=offsets, intercept=False)
    X, offsets = features.transform(words[1])
    test, _ = encode("chain", X, None, offsets=offsets, classes=classes, intercept=False)
    return train, test, classes, spans[1]


def spans_of(tags: list[str]) -> list[str]:
    out: list[str] = []
    for tag in tags:
        out.append("O" if tag != "PROPN" else "I-NAME" if out and out[-1] != "O" else "B-NAME")
    return out
