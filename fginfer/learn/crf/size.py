"""How much memory a random field will take to train, said before it is taken."""

from __future__ import annotations

import os
from warnings import warn

from fginfer.errors import DataError

# Vectors as long as the weights: those of the optimiser, the gradient and what is returned (measured with 500 labels).
VECTORS = {"proxqn": 5, "owlqn": 9, "proxgrad": 9, "bcd": 5, "sgd": 4}
PAIR_ROOM = 1 << 22  # most numbers in the sums over pairs of labels (CRF_PAIR_ROOM in learn/crf/crf.h)
REFUSED, WARNED = 0.9, 0.5  # parts of the memory of the machine (chosen)


def predicted_bytes(
    solver: str, weights: int, all_weights: int, tokens: int, labels: int, tables: int, memory: int, pairs: int = 10
) -> int:
    """`weights` are those that are learned, of `all_weights`; `tables` of labels x labels; `memory` is that for
    marginals, `pairs` those of L-BFGS."""
    vectors = VECTORS.get(solver, 5) + (2 * pairs if solver == "owlqn" else 0)
    cells = min(16 * tokens * labels, memory)
    sums = 16 * max(tables * labels**2, PAIR_ROOM) if tables and weights == all_weights else 0
    whole = 8 * all_weights if weights < all_weights else 0
    return 8 * vectors * weights + whole + cells + sums + 24 * tables * labels**2


def memory_of_machine() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not known on this system
        return None


def check_size(predicted: int, weights: int, labels: int, observed: bool) -> None:
    """Refuses what does not fit into the memory of the machine, and warns of what fills half of it."""
    here = memory_of_machine()
    if here is None or predicted <= WARNED * here:
        return
    advice = "" if observed else "; features='observed' has weights for what the training examples use only"
    text = f"{weights:,} weights over {labels:,} labels take some {predicted / 1e9:.1f} GB to train"
    if predicted > REFUSED * here:
        raise DataError(f"{text}, and this machine has {here / 1e9:.1f}{advice}")
    warn(f"{text} of the {here / 1e9:.1f} that this machine has{advice}", UserWarning, stacklevel=5)
