"""Adam on small batches, with l1 by subgradients or by proximal steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Mask = NDArray[np.bool_]


def adam(
    parameters: Sequence[Reals], gradients: Callable[[NDArray[np.intp]], Sequence[Reals]], samples: int, *,
    epochs: int, batch: int = 128, rate: float = 1e-3, decay: bool = False, l1: Sequence[float] | None = None,
    proximal: bool = False, masks: Sequence[Mask | None] | None = None, seed: int = 0,
    callback: Callable[[int], Any] | None = None,
) -> None:  # fmt: skip
    """Moves `parameters` in place, with `gradients(rows)` of the mean loss of those samples.

    decay : the rate falls to zero, linearly. l1 : a penalty for each parameter; with `proximal` a step ends with
    shrinking towards zero in Adam's own metric, which leaves exact zeros; without, its sign joins the gradient. masks :
    only those entries move. callback : after every epoch; a true answer ends the run.
    """
    penalties = [0.0] * len(parameters) if l1 is None else list(l1)
    limits = [None] * len(parameters) if masks is None else list(masks)
    first, second = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]
    rng = np.random.default_rng(seed)
    step, steps = 0, epochs * -(-samples // batch)
    for epoch in range(epochs):
        order = rng.permutation(samples)
        for at in range(0, samples, batch):
            found = gradients(order[at : at + batch])
            speed = rate * (1 - step / steps) if decay else rate
            step += 1
            for j, p in enumerate(parameters):
                g = found[j]
                if penalties[j] and not proximal:
                    g = g + penalties[j] * np.sign(p)
                if (mask := limits[j]) is not None:
                    g = g * mask
                first[j] += 0.1 * (g - first[j])
                second[j] += 0.001 * (g * g - second[j])
                stride = speed / (np.sqrt(second[j] / (1 - 0.999**step)) + 1e-8)
                p -= stride * (first[j] / (1 - 0.9**step))
                if penalties[j] and proximal:
                    stride *= penalties[j]
                    p -= np.clip(p, -stride, stride)
        if callback is not None and callback(epoch):
            break
