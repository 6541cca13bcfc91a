"""Runs of learning solvers, measured outside the clock, as tables and plots; shared by the parts of learning.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.common.clock import cpu
from bench.learn import learning_data as sets
from fginfer.learn.data.examples import Encoded
from fginfer.learn.learner import Learner
from fginfer.learn.solvers.registry import make_solver

STOPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200)


def run(
    name: str,
    data: Encoded,
    C: float,
    passes: int,
    look: Any,
    options: dict[str, Any] | None = None,
    label: str | None = None,
    stops: Any = STOPS,
) -> list[dict]:
    """Trains, measuring outside the clock after some passes; look(weights) gives the test error."""
    solver = make_solver(name, Learner(data), None, C, 0, options or {})
    spent, rows = 0.0, []
    for done in range(1, passes + 1):
        spent += cpu(lambda: solver.advance(np.inf))[0]
        if done in stops or done == passes:
            m = solver.measure()
            rows.append(
                {"solver": label or name, "passes": done, "seconds": spent, "primal": m.primal, "dual": m.dual,
                 "gap": m.gap, "infeasibility": m.infeasibility, "error": look(solver.weights()),
                 "calls": solver.counters()[0], "entries": solver.counters()[1]}
            )  # fmt: skip
    return rows


def last_rows(rows: list[dict]) -> list[dict]:
    return list({r["solver"]: r for r in rows}.values())


def show(rows: list[dict]) -> None:
    def cell(x: Any, form: str) -> str:
        return "-" if x is None else format(x, form)

    print(
        f"{'solver':<16}{'passes':>7}{'seconds':>9}{'primal':>11}{'dual':>11}{'gap':>9}{'infeas':>9}{'calls':>10}"
        f"{'entries':>10}{'error %':>9}"
    )
    for r in rows:
        print(
            f"{r['solver']:<16}{r['passes']:>7}{r['seconds']:>9.3f}{cell(r['primal'], '.5g'):>11}"
            f"{cell(r['dual'], '.5g'):>11}{cell(r['gap'], '.1e'):>9}{cell(r['infeasibility'], '.1e'):>9}"
            f"{r['calls']:>10}{r['entries']:>10.2g}{100 * r['error']:>9.2f}"
        )


def draw(title: str, rows: list[dict], out: Path | None) -> None:
    """Primal suboptimality (against the best dual bound) and error against time and passes."""
    if out is None:
        return
    try:
        import matplotlib
    except ImportError:
        print("matplotlib: not importable, nothing drawn")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import ScalarFormatter

    hinge = [
        r for r in rows if not r["solver"].startswith("dcd")
    ]  # dcd has another objective: its bound is none for the others
    best = max((r["dual"] for r in hinge if r["dual"] is not None), default=0.0)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8), sharey="row", layout="constrained")
    for number, name in enumerate(dict.fromkeys(r["solver"] for r in rows)):
        look = {"label": name, "color": f"C{number % 10}", "linestyle": ("-", "--", ":")[number // 10]}
        own = [r for r in rows if r["solver"] == name]
        for column, x in enumerate(("seconds", "passes")):
            with_primal = [r for r in own if r["primal"] is not None and r in hinge]
            gaps = [max(1e-7, (r["primal"] - best) / best) for r in with_primal]
            axes[0][column].loglog([r[x] for r in with_primal], gaps, **look)
            axes[1][column].loglog([r[x] for r in own], [100 * r["error"] for r in own], **look)
            axes[0][column].set(xlabel=x, ylabel="primal suboptimality, relative")
            axes[1][column].set(xlabel=x, ylabel="test error %")
    axes[1][0].yaxis.set_major_formatter(ScalarFormatter())
    axes[1][0].yaxis.set_minor_formatter(ScalarFormatter())
    axes[1][1].legend(fontsize=8)
    figure.suptitle(title)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{title.replace(' ', '-')}.png"
    figure.savefig(path, dpi=120)
    print(f"plotted: {path}")
    plt.close(figure)


def choose_C(data: Encoded, grid: tuple[float, ...], passes: int) -> float:
    """Trains on four fifths of the examples, looks at the fifth."""
    order = np.random.default_rng(0).permutation(data.n_examples)
    cut = data.n_examples // 5
    held, rest = sets.subset(data, np.sort(order[:cut])), sets.subset(data, np.sort(order[cut:]))
    judge = Learner(held)

    def error(C: float) -> float:
        look = run("bcfw", rest, C, passes, lambda w: float(np.mean(judge.decode(w).labels != held.truth)))
        return float(look[-1]["error"])

    return min(grid, key=error)
