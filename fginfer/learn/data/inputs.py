"""Small things the estimator needs on its way in and out: settings, scikit-learn's input checks, label formats."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from fginfer.errors import DataError, SettingsError
from fginfer.learn.data.encode import CHOICE_MODELS, check_cost
from fginfer.learn.data.examples import Example, is_listed
from fginfer.learn.data.magnitudes import LARGEST, are_sound
from fginfer.learn.data.sequences import Sequences, is_list
from fginfer.learn.learner import Decoded
from fginfer.learn.row_weights import values_of
from fginfer.learn.solvers.registry import SOLVERS
from fginfer.options import is_number
from fginfer.replacing import LONGEST_NAME


def check_settings(estimator: Any) -> None:
    """Everything that is wrong with the parameters, before any data is looked at."""
    e = estimator
    if e.model not in e.models:
        raise SettingsError(f"model must be one of {', '.join(e.models)}, not {e.model!r}")
    if e.solver != "auto" and e.solver not in SOLVERS:
        raise SettingsError(f"solver must be auto or one of {', '.join(SOLVERS)}, not {e.solver!r}")
    if e.oracle is not None and not callable(getattr(e.oracle, "answer", None)):
        raise SettingsError(f"an oracle has a method answer(learner, weights, example, loss), {e.oracle!r} has none")
    check_common_settings(e)


def check_common_settings(estimator: Any) -> None:
    """The parameters that all trained models have."""
    e = estimator
    check_ranges(e, (("C", False, None), ("tol", False, 0), ("batch_size", True, 1)))
    for name in ("fit_intercept", "pairwise"):
        check_flag(e, name)
    check_run_settings(e)
    if e.solver_options is not None and not isinstance(e.solver_options, dict):
        raise SettingsError(f"solver_options must be a dict, not {e.solver_options!r}")


def check_ranges(estimator: Any, rules: Iterable[tuple[str, bool, float | None]]) -> None:
    """Numbers among the parameters: (name, whether it is whole, the least it may be; None: it must be positive)."""
    for name, whole, least in rules:
        value = getattr(estimator, name)
        if not is_number(value, whole) or not -np.inf < value < np.inf:
            raise SettingsError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")
        if value <= 0 if least is None else value < least:
            raise SettingsError(f"{name} must be {'positive' if least is None else f'at least {least}'}, not {value!r}")


def check_flag(estimator: Any, name: str) -> None:
    if not isinstance(getattr(estimator, name), (bool, np.bool_)):
        raise SettingsError(f"{name} must be True or False, not {getattr(estimator, name)!r}")


def check_run_settings(estimator: Any) -> None:
    """Limits, threads, log and files of a training run: what every estimator has."""
    e = estimator
    check_ranges(e, (("max_iter", True, 1), ("eval_every", True, 0), ("checkpoint_interval", False, 0)))
    check_flag(e, "warm_start")
    if e.time_limit is not None and not (is_number(e.time_limit) and e.time_limit >= 0):
        raise SettingsError(f"time_limit must be None or a number of seconds, 0 or more, not {e.time_limit!r}")
    if e.n_jobs is not None and not (is_number(e.n_jobs, whole=True) and e.n_jobs != 0):
        raise SettingsError(f"n_jobs must be None or a number of threads (-1: all processors), not {e.n_jobs!r}")
    if not isinstance(e.verbose, (Integral, np.bool_)):
        raise SettingsError(f"verbose must be 0, 1 or 2, not {e.verbose!r}")
    if e.callback is not None and not callable(e.callback):
        raise SettingsError(f"callback must be a function of a LearnPoint, not {e.callback!r}")
    if e.checkpoint is not None:
        if not isinstance(e.checkpoint, (str, os.PathLike)):
            raise SettingsError(f"checkpoint must be a path, not {e.checkpoint!r}")
        path = Path(e.checkpoint)
        folder = os.path.isdir(path.parent) and os.access(path.parent, os.W_OK)
        if os.path.isdir(path) or not folder or len(os.fsencode(path.name)) > LONGEST_NAME or "\0" in str(path):
            raise SettingsError(f"checkpoint: {path} is not a file that can be written")


def check_fitted_shapes(estimator: Any, width: int) -> None:
    """Whether the parts of a model from a file fit together. `width`: rows of its unary weights."""
    e, weights, classes = estimator, estimator.weights_, estimator.classes_
    if classes.ndim != 1 or classes.dtype.kind not in "biufUS" or not np.array_equal(classes, np.unique(classes)):
        raise DataError("its classes are not sorted labels")
    for name, least in (("n_features_in_", 0), ("n_edge_features_", 1)):
        if not isinstance(getattr(e, name), int) or not least <= getattr(e, name) < 2**31:
            raise DataError(f"{name} is {getattr(e, name)!r}")
    if e.edge_kind_ not in ("", "types", "features") or not isinstance(e.label_lists_, bool):
        raise DataError("its kind of edges or labels is unknown")
    size, k = width, len(classes)
    if e.model not in CHOICE_MODELS:
        size = width * getattr(e, "n_columns_", k)  # a taxonomy has more weights than labels
        if e.pairwise and e.model != "multiclass":
            size += k * k * (1 if e.model == "multilabel" else e.n_edge_features_)
    values = values_of(weights)
    if values.dtype != np.float64 or weights.shape != (size,) or not are_sound(values):
        raise DataError(f"its weights are not {size} finite numbers of at most {LARGEST:g}")
    check_cost(e.loss, k, e.model)


def check_dense_input(estimator: Any, X: Any, y: Any, fitting: bool) -> tuple[Any, Any]:
    """scikit-learn's own checks (and messages) for plain tables; lists are checked in learn.data.examples.

    An Example around a table keeps what else it has."""
    if X is None or isinstance(X, str | bytes):
        raise DataError(f"X must be examples (arrays, or lists with one for each), not {type(X).__name__}")
    inner = X.features if isinstance(X, Example) else X
    tables = estimator.model in ("multiclass", "multilabel") or (
        estimator.model in ("chain", "graph") and not is_listed(X, None)
    )
    if not tables:
        return X, y
    if estimator.model in ("chain", "graph") and y is not None and _lists_sequences(y):
        raise DataError(
            "X is one table, but y is a list of sequences: give X as a list of tables, too, or both in one piece with"
            " offsets; a scaler in a pipeline is applied to lists by PerToken(StandardScaler())"
        )
    settings: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "reset": fitting}
    if not fitting and estimator.n_features_in_ == 0:  # a converted model may have transitions and nothing else
        settings["ensure_min_features"] = 0
    if y is None or estimator.model == "multilabel":  # label sets are checked in fginfer.learn.data.labels
        inner = validate_data(estimator, inner, **settings)
    else:
        inner, y = validate_data(estimator, inner, y, **settings)
        try:
            check_classification_targets(y)
        except TypeError:  # labels that cannot be sorted
            kinds = ", ".join(sorted({type(label).__name__ for label in np.asarray(y).ravel().tolist()}))
            raise DataError(f"labels must be of one kind, numbers or texts; y has {kinds}") from None
    return (replace(X, features=inner) if isinstance(X, Example) else inner), y


def _lists_sequences(y: Any) -> bool:
    return isinstance(y, Sequences) or (is_list(y) and any(np.ndim(part) == 1 for part in y[:1]))


def seed_of(random_state: Any) -> int:
    """None means 0: training is reproducible unless a random state asks otherwise."""
    if random_state is None:
        return 0
    try:
        generator = check_random_state(random_state)
    except ValueError as error:
        raise SettingsError(f"random_state: {error}") from None
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(generator.randint(2**31 - 1))


def threads_of(n_jobs: int | None) -> int:
    """-1 is all processors, -2 all but one. More than 64 threads (or processors) only take memory."""
    if n_jobs is None:
        return 1
    processors = os.cpu_count() or 1
    return int(min(n_jobs, max(64, processors)) if n_jobs > 0 else max(1, processors + 1 + n_jobs))


def decode_output(model: str, answers: Decoded, classes: NDArray[Any], listed: bool) -> Any:
    """Answers of the core in the user's labels. `listed`: as a list of one array an example."""
    if model == "multilabel":
        parts = answers.split()
        if not listed and classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes))):
            begin = np.concatenate([[0], answers.end])
            flat = answers.labels[: begin[-1]]
            matrix = sp.csr_matrix((np.ones(len(flat), np.int64), flat, begin), shape=(len(parts), len(classes)))
            return matrix.toarray()
        return [classes[part] for part in parts]
    flat = classes[answers.labels] if model not in CHOICE_MODELS else answers.labels
    return np.split(flat, answers.end[:-1]) if listed and model != "multiclass" else flat
