"""Fits, cross-validation and prediction through joblib, and through Dask: equal to serial."""

from __future__ import annotations

import distributed
import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from fginfer.learn import StructuredSVM

from .test_estimator import words


def work():
    X, y = words(40)
    search = GridSearchCV(StructuredSVM(max_iter=10), {"C": [0.1, 1.0]}, cv=2, n_jobs=2).fit(X, y)
    model = StructuredSVM(C=1.0, max_iter=10).fit(X, y)
    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(model.predict)(X[k::2]) for k in range(2))
    return (
        search.cv_results_["mean_test_score"],
        search.best_estimator_.weights_,
        np.concatenate([*parts[0], *parts[1]]),
    )


@pytest.fixture(scope="module")
def serial():
    with joblib.parallel_config("sequential"):
        return work()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", "loky", "dask"])
def test_backends_agree_with_serial(serial, backend):
    if backend == "dask":
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
            ) as cluster,
            distributed.Client(cluster),
            joblib.parallel_config("dask"),
        ):
            found = work()
    else:
        with joblib.parallel_config(backend):
            found = work()
    for a, b in zip(serial, found, strict=True):
        assert np.array_equal(a, b)
