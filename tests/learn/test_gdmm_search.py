"""Unigram oracles of gdmm by a search index: the runs of a scan, or nearly so from fewer labels; threads, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fginfer.errors import FginferError, SettingsError
from fginfer.learn import StructuredSVM
from fginfer.learn.learner import Learner
from fginfer.learn.run.loop import Limits, drive
from fginfer.learn.solvers.registry import make_solver

from . import problems as P
from .test_solvers import optimum


def points(labels: int, d: int = 8, each: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Samples around one point per label; the points lie in groups."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((labels // 20, d))[np.arange(labels) % (labels // 20)]
    centres = centres + 0.3 * rng.standard_normal((labels, d))
    y = np.tile(np.arange(labels), each)
    return centres[y] + 0.05 * rng.standard_normal((len(y), d)), y


@pytest.mark.parametrize("case", ["tokens", "chain", "tree"])
@pytest.mark.parametrize("options", [{}, {"batch_size": 3}, {"probes": 2}, {"block_C": 0.05}])
def test_it_meets_the_optimum(case: str, options: dict[str, Any]) -> None:
    sizes: dict[str, Any] = {
        "tokens": {"n": 10, "edges": 0, "most": 1},
        "chain": {"n": 6},
        "tree": {"n": 5, "edges": 2},
    }
    data, C = P.random_labels(np.random.default_rng(1), **sizes[case]), 0.3
    best = optimum(data, C, squared=False)
    solver = make_solver("gdmm", Learner(data), None, C, 0, {"search": "index", "primal": "exact", **options})
    status, trace = drive(solver, Limits(1e-4, 5000))
    assert status == "converged", trace[-1]
    assert trace[-1].primal == pytest.approx(best, rel=2e-4)
    assert trace[-1].dual <= best * (1 + 1e-6)


@pytest.mark.parametrize("batch_size", [1, 40])
def test_exact_runs_are_those_of_a_scan_and_approximate_ones_touch_less(batch_size: int) -> None:
    X, y = points(1200)

    def run(**options: Any) -> StructuredSVM:
        options |= {"batch_size": batch_size, "partitions": 1}  # a scan of so many labels looks at parts of them
        model = StructuredSVM(model="multiclass", solver="gdmm", C=1.0, max_iter=3, tol=1e-9, solver_options=options)
        return model.set_params(random_state=0).fit(X, y)

    scan, index, few = run(), run(search="index"), run(search="index", probes=2)
    assert np.allclose(index.coef_, scan.coef_, atol=1e-6)
    assert index.trace_[-1].primal == pytest.approx(scan.trace_[-1].primal, rel=1e-6)
    assert few.trace_[-1].primal < 1.2 * scan.trace_[-1].primal
    touched = [m.trace_[-1].entries_touched for m in (scan, index, few)]
    assert touched[1] < 1.1 * touched[0]  # weights in training are hardly clustered: it goes over to scans
    assert touched[2] < 0.6 * touched[0]  # after the first pass, which is exact


def test_threads_and_checkpoints_change_nothing(tmp_path: Path) -> None:
    X, y = points(200)
    options: dict[str, Any] = {
        "model": "multiclass", "solver": "gdmm", "C": 1.0, "tol": 1e-9, "random_state": 0,
        "solver_options": {"search": "index", "batch_size": 16},
    }  # fmt: skip
    one = StructuredSVM(**options, max_iter=4, n_jobs=1).fit(X, y).coef_
    assert (StructuredSVM(**options, max_iter=4, n_jobs=3).fit(X, y).coef_ == one).all()
    path = tmp_path / "run.npz"
    StructuredSVM(**options, max_iter=2, checkpoint=path).fit(X, y)
    assert (StructuredSVM(**options, max_iter=4, checkpoint=path).fit(X, y).coef_ == one).all()


def test_bad_settings() -> None:
    data = P.random_labels(np.random.default_rng(0))
    for wrong in (
        {"search": "tree"}, {"search": "index", "partitions": 2}, {"search": "index", "variant": "afw"},
        {"search": "index", "probes": 0}, {"probes": 2},
    ):  # fmt: skip
        with pytest.raises(SettingsError):
            make_solver("gdmm", Learner(data), None, 1.0, 0, wrong)
    listed = P.random_labels(np.random.default_rng(0), labels=5, candidates=True)
    with pytest.raises(FginferError, match="candidates"):
        make_solver("gdmm", Learner(listed), None, 1.0, 0, {"search": "index"})
    with pytest.raises(SettingsError, match="label sets"):
        make_solver("gdmm", Learner(P.random_sets(np.random.default_rng(0))), None, 1.0, 0, {"search": "index"})
