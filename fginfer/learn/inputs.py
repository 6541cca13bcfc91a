"""Small things the estimator needs on its way in and out: settings, scikit-learn's input checks, label formats."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from fginfer.errors import SettingsError
from fginfer.learn.encode import CHOICE_MODELS, MODELS
from fginfer.learn.learner import Answers


def check_settings(estimator: Any) -> None:
    """Everything that is wrong with the parameters, before any data is looked at."""
    if estimator.model not in MODELS:
        raise SettingsError(f"model must be one of {', '.join(MODELS)}, not {estimator.model!r}")
    if not (isinstance(estimator.C, (int, float, np.number)) and 0 < estimator.C < np.inf):
        raise SettingsError(f"C must be a positive number, not {estimator.C!r}")
    if not estimator.tol >= 0:
        raise SettingsError(f"tol must not be negative, it is {estimator.tol!r}")
    if estimator.max_iter < 1 or estimator.batch_size < 1 or estimator.eval_every < 0:
        raise SettingsError("max_iter and batch_size must be at least 1, eval_every at least 0")
    if estimator.time_limit is not None and not estimator.time_limit > 0:
        raise SettingsError("time_limit must be positive")


def check_dense_input(estimator: Any, X: Any, y: Any, fitting: bool) -> tuple[Any, Any]:
    """scikit-learn's own checks (and messages) for plain tables; sequences are checked in fginfer.learn.data."""
    if estimator.model != "multiclass":
        return X, y
    if y is None:
        return validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=fitting), None
    X, y = validate_data(estimator, X, y, accept_sparse="csr", dtype=np.float64, reset=fitting)
    check_classification_targets(y)
    return X, y


def seed_of(random_state: Any) -> int:
    """None means 0: training is reproducible unless a random state asks otherwise."""
    if random_state is None:
        return 0
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def threads_of(n_jobs: int | None) -> int:
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def decode_output(model: str, answers: Answers, classes: NDArray[Any], listed: bool) -> Any:
    """Answers of the core in the user's labels."""
    if model == "multilabel":
        parts = answers.split()
        if classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
            begin = np.concatenate([[0], answers.end])
            flat = answers.labels[: begin[-1]]
            matrix = sp.csr_matrix((np.ones(len(flat), np.int64), flat, begin), shape=(len(parts), len(classes)))
            return matrix.toarray()
        return [classes[part] for part in parts]
    flat = classes[answers.labels] if model not in CHOICE_MODELS else answers.labels
    return np.split(flat, answers.end[:-1]) if listed and model != "multiclass" else flat
