"""The n best label sequences of a chain, by dynamic programming over ranked partial sequences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fginfer.learn.data.examples import Ints, Reals


def best_sequences(scores: Reals, tables: list[Reals], allowed: NDArray[np.bool_], n: int) -> list[tuple[Ints, float]]:
    """[(labels, score), ...], best first, at most n (fewer where there are fewer). scores: (T, K); tables: a (K, K) for
    each pair of neighbours; allowed: (T, K). Ties go to the lowest labels, from the last token on."""
    length, k = scores.shape
    first = np.where(allowed[0], scores[0], -np.inf)
    value = first[:, None]  # (K, ranks): the best partial sequences that end in each label
    back: list[NDArray[np.int64]] = []
    for t in range(1, length):
        ranks = value.shape[1]
        # (K to, K from * ranks)
        reach = (value[None, :, :] + tables[t - 1].T[:, :, None]).reshape(k, k * ranks)
        keep = min(n, k * ranks)
        order = np.argsort(-reach, axis=1, kind="stable")[:, :keep]
        value = np.take_along_axis(reach, order, 1) + np.where(allowed[t], scores[t], -np.inf)[:, None]
        back.append(order)
    flat = value.ravel()
    out: list[tuple[Ints, float]] = []
    widths = [b.shape[1] for b in back]
    for place in np.argsort(-flat, kind="stable")[:n]:
        if flat[place] == -np.inf:
            break
        labels = np.zeros(length, np.int32)
        state = int(place)
        for t in range(length - 1, 0, -1):
            label, rank = divmod(state, widths[t - 1])
            labels[t] = label
            state = int(back[t - 1][label, rank])
        labels[0] = state  # the first token has one rank
        out.append((labels, float(flat[place])))
    return out
