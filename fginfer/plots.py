"""Pictures of results, with matplotlib (extra `plots`): what was known when, how the gap closed, labels of a grid, how
sure each variable is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fginfer.errors import SettingsError
from fginfer.result import Result

__all__ = ["plot_confidence", "plot_gap", "plot_labels", "plot_trace"]


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    try:
        import matplotlib.pyplot as plt  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise SettingsError('plots need matplotlib: pip install "fginfer[plots]"') from None
    return plt.subplots()[1]


def _named(results: Result | Mapping[str, Result]) -> dict[str, Result]:
    named = {results.method: results} if isinstance(results, Result) else results
    if not isinstance(named, Mapping) or not all(isinstance(result, Result) for result in named.values()):
        raise SettingsError(f"give a Result, or several by name, {{'trws': result, ...}}, not {type(results).__name__}")
    for name, result in named.items():
        if not result.trace:
            raise SettingsError(f"the result of {name} has no trace: it was left out, or nothing was found in time")
    return dict(named)


def plot_trace(results: Result | Mapping[str, Result], axes: Any = None) -> Any:
    """Scores (solid) and bounds (dashed) over time, of one result or of several by name; returns the axes.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import fginfer
    >>> result = fginfer.solve(fginfer.FactorGraph([2, 2]))
    >>> plot_trace(result).get_xlabel()
    'seconds'
    """
    axes = _axes(axes)
    for k, (name, result) in enumerate(_named(results).items()):
        for which, style in (("score", "-"), ("bound", "--")):
            points = [(p.seconds, getattr(p, which)) for p in result.trace if getattr(p, which) is not None]
            if not points:
                continue
            points.append((max(result.seconds, points[-1][0]), points[-1][1]))
            seconds, values = zip(*points, strict=True)
            axes.step(seconds, values, where="post", ls=style, color=f"C{k}", label=f"{name}: {which}")
    axes.set(xlabel="seconds", ylabel="score and bound")
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
    return axes


def plot_gap(results: Result | Mapping[str, Result], axes: Any = None) -> Any:
    """The distance between bound and score over time, on logarithmic axes; returns the axes.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import fginfer
    >>> plot_gap({"auto": fginfer.solve(fginfer.FactorGraph([2, 2]))}).get_ylabel()
    'bound - score'
    """
    axes = _axes(axes)
    for name, result in _named(results).items():
        points = [(p.seconds, p.bound - p.score) for p in result.trace if p.bound is not None and p.score is not None]
        positive = [(max(t, 1e-6), gap) for t, gap in points if gap > 0]
        if positive:
            seconds, gaps = zip(*positive, strict=True)
            axes.step(seconds, gaps, where="post", label=name)
    axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="bound - score")
    if axes.get_legend_handles_labels()[1]:
        axes.legend()
    return axes


def plot_labels(labels: Result | ArrayLike, shape: tuple[int, int], axes: Any = None, **imshow: Any) -> Any:
    """Labels of a grid of variables as an image; returns the axes. Other arguments go to matplotlib's imshow.

    >>> import matplotlib; matplotlib.use("Agg")
    >>> plot_labels([0, 1, 1, 0, 2, 2], (2, 3)).images[0].get_array().shape
    (2, 3)
    """
    if isinstance(labels, Result):
        if labels.labels is None:
            raise SettingsError("the result has no labeling to show")
        labels = labels.labels
    x = np.asarray(labels)
    if x.size != shape[0] * shape[1]:
        raise SettingsError(f"{x.size} labels do not fill a grid of {shape[0]} x {shape[1]}")
    axes = _axes(axes)
    axes.imshow(x.reshape(shape), **{"interpolation": "nearest", **imshow})
    axes.set(xticks=[], yticks=[])
    return axes


class Confident(Protocol):
    """What `marginals` and `max_marginals` return."""

    def confidence(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...


def plot_confidence(
    found: Confident,
    shape: tuple[int, int] | None = None,
    names: list[str] | None = None,
    axes: Any = None,
) -> Any:
    """How sure each variable is of its best label: a bar each, or an image of a grid of variables; returns the axes.

    found  what `marginals` returned (the probability of the best label) or `max_marginals` (what the second label loses
           against the first; where that is between two bounds a line leads from one to the other)
    shape  rows and columns of the image, where the variables are a grid
    names  of the variables, below their bars
    axes   where to draw

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import fginfer
    >>> plot_confidence(fginfer.marginals(fginfer.FactorGraph([2, 2]))).get_ylabel()
    'probability of the best label'
    """
    if not hasattr(found, "confidence"):
        raise SettingsError(f"give what marginals or max_marginals returned, not {type(found).__name__}")
    least, most = found.confidence()
    if names is not None and len(names) != len(least):
        raise SettingsError(f"{len(names)} names do not fit {len(least)} variables")
    if shape is not None and len(least) != shape[0] * shape[1]:
        raise SettingsError(f"{len(least)} variables do not fill a grid of {shape[0]} x {shape[1]}")
    what = "lost by the second label" if hasattr(found, "high") else "probability of the best label"
    axes = _axes(axes)
    if shape is not None:
        image = axes.imshow(np.where(np.isfinite(least), least, np.nan).reshape(shape), interpolation="nearest")
        axes.figure.colorbar(image, label=what)
        axes.set(xticks=[], yticks=[])
        return axes
    at, finite = np.arange(len(least)), np.isfinite(least)
    axes.bar(at[finite], least[finite])
    axes.vlines(at[np.isfinite(most)], least[np.isfinite(most)], most[np.isfinite(most)], color="black")
    axes.set(xlabel="variable", ylabel=what)
    if names is not None:
        axes.set_xticks(at, names, rotation=90)
    return axes
