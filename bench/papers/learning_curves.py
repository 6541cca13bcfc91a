"""Repeated runs of learning solvers as curves with bands, for learning_papers.py."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fginfer.core.learn import Kind
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.oracle import losses
from fginfer.learn.solvers.registry import make_solver

STOPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500)


@dataclass
class Plan:
    """label: in tables and plots. point: which weights are looked at, the "last" ones, their "mean", or the "best" of
    what the solver measures."""

    label: str
    solver: str
    options: dict[str, Any] = field(default_factory=dict)
    point: str = "best"
    passes: int | None = None
    oracle: Any = None


def follow(plan: Plan, data: Encoded, C: float, passes: int, look: Any, seed: int) -> list[dict[str, Any]]:
    """One run, measured outside the clock; look(weights) is the test error."""
    solver = make_solver(plan.solver, Learner(data), plan.oracle, C, seed, plan.options)
    spent, rows = 0.0, []
    for done in range(1, (plan.passes or passes) + 1):
        start = time.process_time()
        solver.advance(np.inf)
        spent += time.process_time() - start
        if done not in STOPS and done != (plan.passes or passes):
            continue
        if plan.point == "best":
            m = solver.measure()
            primal, dual, w = m.primal, m.dual, solver.weights()
        else:
            w = solver.learner.blend(lambda now, _: now) if plan.point == "last" else solver.averaged()
            if plan.solver == "ssg" and plan.point == "last":  # its weights are stored scaled
                w = w * (data.n_examples * C / solver.learner.state.steps)
            dual = solver._dual() if plan.solver == "bcfw" else None
            oracle = None if data.kind == Kind.LABELS else plan.oracle  # what is measured is measured exactly
            primal = 0.5 * float(w @ w) + C * float(np.sum(losses(solver.learner, oracle, w)))
        error = None if look is None else 100 * look(w)
        rows.append({"passes": done, "seconds": spent, "primal": primal, "dual": dual, "error": error})
    return rows


def compare(
    plans: list[Plan], data: Encoded, C: float, passes: int, look: Any = None, runs: int = 1
) -> dict[str, list[list[dict[str, Any]]]]:
    """label -> runs -> points. Each result is printed as it comes."""
    found = {}
    for plan in plans:
        batch = plan.solver in ("fw", "cutting-plane")
        found[plan.label] = [follow(plan, data, C, passes, look, seed) for seed in range(1 if batch else runs)]
        show_last(plan.label, found[plan.label])
    return found


def show_last(label: str, runs: list[list[dict[str, Any]]]) -> None:
    """Range over the runs at their last point."""
    last = [rows[-1] for rows in runs]

    def span(name: str, form: str) -> str:
        values = [r[name] for r in last if r[name] is not None]
        if not values:
            return "-"
        low, high = format(min(values), form), format(max(values), form)
        return low if low == high else f"{low} .. {high}"

    print(
        f"  {label:<26}{last[0]['passes']:>5} passes {span('seconds', '.2f'):>16} s  primal {span('primal', '.6g'):<22}"
        f" dual {span('dual', '.6g'):<22} error % {span('error', '.2f')}",
        flush=True,
    )


def best_dual(found: dict[str, list[list[dict[str, Any]]]]) -> float:
    """The largest lower bound of all runs."""
    return max(
        (r["dual"] for runs in found.values() for rows in runs for r in rows if r["dual"] is not None), default=0.0
    )


def bands(found: dict[str, list[list[dict[str, Any]]]], x: str, y: str, floor: float | None = None) -> dict[str, Any]:
    """label -> (x, lowest, mean, highest of the runs); with a floor the relative distance from it."""
    out = {}
    for label, runs in found.items():
        points = [k for k in range(min(map(len, runs))) if all(rows[k][y] is not None for rows in runs)]
        if not points:
            continue
        values = np.array([[rows[k][y] for k in points] for rows in runs])
        if floor is not None:
            values = np.maximum(1e-8, (values - floor) / abs(floor))
        place = np.mean([[rows[k][x] for k in points] for rows in runs], axis=0)
        out[label] = (place, values.min(axis=0), values.mean(axis=0), values.max(axis=0))
    return out


def draw(title: str, panels: list[tuple[str, str, str, dict[str, Any]]], out: Path | None, columns: int = 3) -> None:
    """panels: (heading, x, y, bands)."""
    if out is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(4.6 * columns, 3.8 * lines), layout="constrained", squeeze=False
    )
    for axis, (heading, x, y, curves) in zip(axes.ravel(), panels, strict=False):
        for number, (label, (place, low, middle, high)) in enumerate(curves.items()):
            look = {"color": f"C{number % 10}", "linestyle": ("-", "--")[number // 10]}
            axis.loglog(place, middle, label=label, **look)
            axis.fill_between(place, low, high, alpha=0.2, color=look["color"], linewidth=0)
        axis.set(title=heading, xlabel=x, ylabel=y)
        _plain_numbers(axis.xaxis, (1.0, 3.0))
        if y.startswith("test error"):
            _plain_numbers(axis.yaxis, (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
        axis.legend(fontsize=7)
    for axis in axes.ravel()[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(title)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{title.replace(' ', '-').replace(',', '')}.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    print(f"plotted: {path}", flush=True)


def _plain_numbers(axis: Any, digits: tuple[float, ...]) -> None:
    """Ticks of a logarithmic axis at these digits, written as numbers that do not overlap."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
