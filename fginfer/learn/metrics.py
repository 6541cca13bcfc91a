"""Measures of the benchmarks: chunk F1 (as conlleval counts), micro-F1 and exact match of label sets, attachment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def chunks(tags: Sequence[str]) -> set[tuple[int, int, str]]:
    """(first, last, type) of the chunks in B-/I-/O tags; an I- after another type begins a chunk, as in conlleval."""
    found: set[tuple[int, int, str]] = set()
    start, kind = 0, ""
    for at, tag in enumerate([*tags, "O"]):
        prefix, _, name = str(tag).partition("-")
        if kind and (prefix != "I" or name != kind):
            found.add((start, at - 1, kind))
            kind = ""
        if prefix in ("B", "I") and not kind:
            start, kind = at, name
    return found


def chunk_f1(truth: Iterable[Sequence[str]], answer: Iterable[Sequence[str]]) -> float:
    """F1 of whole chunks in the tags B-X, I-X, O: a chunk counts if its borders and its kind are right.

    >>> chunk_f1([["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "I-NP", "O", "O"]]) == 2 / 3
    True
    """
    right = true = said = 0
    for z, y in zip(truth, answer, strict=True):
        a, b = chunks(z), chunks(y)
        right, true, said = right + len(a & b), true + len(a), said + len(b)
    return 2.0 * right / max(1, true + said)


def micro_f1(truth: Any, answer: Any) -> float:
    """The micro-averaged F1 of two indicator matrices.

    >>> micro_f1([[1, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 1]]) == 2 / 3
    True
    """
    z, y = np.asarray(truth) > 0, np.asarray(answer) > 0
    return 2.0 * float((z & y).sum()) / max(1.0, float(z.sum() + y.sum()))


def exact_match(truth: Any, answer: Any) -> float:
    """Share of the rows of two indicator matrices that agree entirely.

    >>> exact_match([[1, 0], [0, 1]], [[1, 0], [1, 1]])
    0.5
    """
    return float(np.all((np.asarray(truth) > 0) == (np.asarray(answer) > 0), axis=1).mean())
