"""path: a model for each of several C, each trained from the one before."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from fginfer.errors import SettingsError
from fginfer.learn.estimator import StructuredSVM


@dataclass(frozen=True)
class Path:
    """Values of C from small to large, and the models trained with them."""

    C: tuple[float, ...]
    models: tuple[StructuredSVM, ...]


def path(
    estimator: StructuredSVM,
    X: Any,
    y: Any,
    offsets: ArrayLike | None = None,
    *,
    Cs: ArrayLike = (0.01, 0.1, 1.0, 10.0),
    sample_weight: ArrayLike | None = None,
) -> Path:
    """Trains `estimator` for every C, smallest first. bcfw and dcd begin with the answers that they have kept and their
    duals, perceptron and mira with their weights; other solvers begin anew. `time_limit` holds for each.

    >>> from fginfer.learn import StructuredSVM
    >>> X, y = [[[0.0], [1.0]], [[1.0], [0.0]]], [[0, 1], [1, 0]]
    >>> [model.score(X, y) for model in path(StructuredSVM(), X, y, Cs=[0.1, 10.0]).models]
    [1.0, 1.0]
    """
    if not isinstance(estimator, StructuredSVM):
        raise SettingsError(f"path takes a StructuredSVM, not {type(estimator).__name__}; random fields have crf_path")
    try:
        values = np.unique(np.asarray(Cs, np.float64))
    except (TypeError, ValueError):
        values = np.zeros(0)
    if not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise SettingsError(f"Cs must be positive numbers, not {Cs!r}")
    walker = clone(estimator).set_params(warm_start=True, checkpoint=None)
    models = []
    for C in values:
        walker.set_params(C=float(C)).fit(X, y, offsets, sample_weight)
        model = copy(walker).set_params(warm_start=estimator.warm_start, checkpoint=estimator.checkpoint)
        model._last_run = None
        models.append(model)
    return Path(tuple(map(float, values)), tuple(models))
