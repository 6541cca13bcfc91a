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
