"""crf_path: a random field for each of several l1 penalties, each trained from the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fginfer.core import clock
from fginfer.errors import SettingsError
from fginfer.learn.crf.base import CrfEstimator
from fginfer.options import is_number


@dataclass(frozen=True)
class CrfPath:
    """Penalties from large to small, and the models trained with them."""

    l1: tuple[float, ...]
    models: tuple[CrfEstimator, ...]

    @property
    def nonzeros(self) -> list[int]:
        """Weights that are not zero, a number for each penalty."""
        return [model.n_nonzero_ for model in self.models]


def crf_path(
    estimator: CrfEstimator,
    X: Any,
    y: Any,
    offsets: ArrayLike | None = None,
    *,
    l1s: ArrayLike | None = None,
    n: int = 10,
    ratio: float = 0.01,
) -> CrfPath:
    """Trains clones of `estimator` for the penalties `l1s`, largest first, each from the weights of the one before;
    default: `n` penalties from the smallest that leaves no weight to `ratio` times that, evenly spaced in their logs.
    The data are read and laid out once. `time_limit` holds for each of them.

    >>> from fginfer.learn import ChainCRF, crf_path
    >>> X, y = [[[1.0, 0.0], [0.0, 1.0]]] * 3, [["a", "b"]] * 3
    >>> found = crf_path(ChainCRF(), X, y, n=4)
    >>> len(found.models), found.models[0].n_nonzero_ <= found.models[-1].n_nonzero_
    (4, True)
    """
    begin = clock.now()
    first = clone(estimator)
    data, loss = first._prepare(X, y, offsets)
    if l1s is None:
        if not is_number(n, whole=True) or n < 1 or not is_number(ratio) or not 0 < ratio <= 1:
            raise SettingsError(f"n must be at least 1 and ratio between 0 and 1, not {n!r} and {ratio!r}")
        zero = np.zeros(loss.dimension)
        loss.value(zero)
        largest = float(np.abs(loss.gradient(zero)).max())
        penalties = np.geomspace(largest, ratio * largest, n)
    else:
        penalties = np.sort(np.atleast_1d(np.asarray(l1s, np.float64)))[::-1]
        if penalties.ndim != 1 or len(penalties) == 0 or not (np.isfinite(penalties) & (penalties >= 0)).all():
            raise SettingsError(f"l1s must be finite numbers, at least 0, not {l1s!r}")
    models: list[CrfEstimator] = []
    for l1 in penalties:
        model = clone(estimator).set_params(l1=float(l1))
        for name, value in vars(first).items():
            if name.endswith("_") or name.startswith("_"):
                setattr(model, name, value)
        model._fit_loss(data, loss, begin, models[-1].weights_ if models else None)
        models.append(model)
        begin = clock.now()
    return CrfPath(tuple(map(float, penalties)), tuple(models))
