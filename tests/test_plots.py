"""fginfer.plots: what is drawn is what the result says."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import fginfer
from fginfer import FactorGraph, Potts, SettingsError, plots

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def result() -> fginfer.Result:
    rng = np.random.default_rng(0)
    return fginfer.solve(FactorGraph.grid((6, 7), rng.normal(size=(6, 7, 3)), Potts(0, -0.5)), "trws")


def test_trace_ends_at_the_score_and_the_bound(result: fginfer.Result) -> None:
    lines = {line.get_label(): line.get_ydata() for line in plots.plot_trace({"a": result}).get_lines()}
    assert lines["a: score"][-1] == result.score
    assert lines["a: bound"][-1] == result.bound


def test_gap_falls(result: fginfer.Result) -> None:
    for line in plots.plot_gap(result).get_lines():
        assert (np.diff(line.get_ydata()) <= 0).all()


def test_labels_fill_the_image(result: fginfer.Result) -> None:
    image = plots.plot_labels(result, (6, 7)).images[0]
    assert np.array_equal(np.asarray(image.get_array()).reshape(-1), result.labels)
    with pytest.raises(SettingsError, match="42 labels do not fill a grid of 5 x 7"):
        plots.plot_labels(result, (5, 7))


def test_confidence_of_marginals_and_of_max_marginals() -> None:
    graph = FactorGraph([2, 3, 1])
    graph.add_factor([0, 1], [[0.0, 1.0, 3.0], [2.5, 0.0, 0.0]])
    known, best = fginfer.marginals(graph), fginfer.max_marginals(graph)
    bars = plots.plot_confidence(known, names=["a", "b", "c"]).patches
    assert [bar.get_height() for bar in bars] == [float(p.max()) for p in known.variables]
    assert [bar.get_height() for bar in plots.plot_confidence(best).patches] == [0.5, 0.5]  # the third has no other
    image = plots.plot_confidence(best, shape=(1, 3)).images[0].get_array()
    assert np.array_equal(np.ma.filled(image, -1.0), [[0.5, 0.5, -1.0]])


def test_confidence_between_bounds_and_of_other_things(result: fginfer.Result) -> None:
    low, high = [np.array([0.0, 3.0])], [np.array([2.0, 3.0])]
    open_ = fginfer.MaxMarginals(3.0, 3.0, low, low, high, False, (0,))
    assert [x.tolist() for x in open_.confidence()] == [[1.0], [3.0]]
    with pytest.raises(SettingsError, match="what marginals or max_marginals returned, not Result"):
        plots.plot_confidence(result)
    with pytest.raises(SettingsError, match="2 names do not fit 1 variables"):
        plots.plot_confidence(open_, names=["a", "b"])
    with pytest.raises(SettingsError, match="1 variables do not fill a grid of 2 x 2"):
        plots.plot_confidence(open_, shape=(2, 2))
