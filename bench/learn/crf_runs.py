"""Runs of crf.py: what a method has reached after how many CPU seconds, kept in a folder if there is one.

A run that its limit has ended goes on from there when it is asked for again, so that a long comparison can be made in
parts of a few minutes. Only training is timed; predictions on the test data in between are not.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from fginfer.learn.crf.sgd import SgdSolver
from fginfer.learn.crf.solver import CrfSolver

LEVELS = (1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
SGD_PASSES = 30


@dataclass
class Run:
    """trace: (CPU seconds, values and gradients, objective, non-zeros) a step; rights: (CPU seconds, what is right on
    test data); violation: the largest against the first, at the end."""

    trace: list = field(default_factory=list)
    rights: list = field(default_factory=list)
    seconds: float = 0.0
    over: bool = False
    violation: float = float("nan")


class Runs:
    """The runs of one comparison."""

    def __init__(self, folder, title):
        self.folder = Path(folder) if folder else None
        self.title = re.sub(r"[^a-z0-9]+", "-", title.lower())
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)

    def path(self, name, suffix):
        return self.folder / f"{self.title}-{name}.{suffix}"

    def load(self, name):
        if self.folder and self.path(name, "json").exists():
            return Run(**json.loads(self.path(name, "json").read_text()))
        return Run()

    def save(self, name, run, state=None):
        if not self.folder:
            return
        self.path(name, "json").write_text(json.dumps(asdict(run)))
        if state is not None:
            np.savez(self.path(name, "npz"), **state)

    def state(self, name):
        with np.load(self.path(name, "npz")) as arrays:
            return dict(arrays)


def run_ours(runs, method, crf, train, limit, right):
    """Trains with a method of ours, for so many seconds (by the clock) more; right(crf): what is right on test data."""
    run = runs.load(method)
    if run.over:
        return run
    begin = time.process_time()
    data, loss = crf._prepare(*train, *[None] * (3 - len(train)))
    if method == "sgd":
        solver = SgdSolver(loss, data, crf.l1, crf.l2, 0, crf.solver_options or {})
    else:
        solver = CrfSolver(crf.solver, loss, data, crf.l1, crf.l2, crf.tol, 0, crf.solver_options or {})
    if run.trace:
        solver.restore(runs.state(method))
    else:
        run.seconds = time.process_time() - begin
    end = time.perf_counter() + (limit or np.inf)
    following = 1.3 * run.rights[-1][0] if run.rights else 0.0
    while not run.over and time.perf_counter() < end:
        begin = time.process_time()
        solver.advance(np.inf)
        run.seconds += time.process_time() - begin
        last = solver.history[-1] if solver.history else None
        run.over = solver.wants_certificate(crf.tol) or (method == "sgd" and last.steps >= SGD_PASSES)
        if last is None:
            continue
        run.trace.append((run.seconds, last.passes, last.objective, last.nonzeros))
        run.violation = last.violation
        if run.seconds >= following or run.over or time.perf_counter() >= end:
            crf.weights_ = solver.weights()
            run.rights.append((run.seconds, right(crf)))
            following = 1.3 * run.seconds
    if run.over and method != "sgd":
        run.violation = solver.measure().gap  # over all coordinates; a step looks at its working set alone
    runs.save(method, run, solver.export())
    return run


def report(named, first="proxqn"):
    """One line a run, and how much faster than the others `first` is to 1e-4."""
    best = min(f for run in named.values() for _, _, f, _ in run.trace)
    print(f"best objective {best:.6f}")
    print(f"{'method':<10}" + "".join(f"{f'{level:g}':>16}" for level in LEVELS) + f"{'objective':>16}{'above':>9}"
          f"{'nonzeros':>10}{'violation':>10}{'all s':>8}{'test':>8}")  # fmt: skip
    reached = {}
    for name, run in named.items():
        cells = []
        for level in LEVELS:
            hit = next(((s, p) for s, p, f, _ in run.trace if f <= best * (1 + level)), None)
            reached[name, level] = hit
            cells.append("-" if hit is None else f"{hit[0]:.1f} s/{hit[1]}")
        _, _, objective, nonzeros = run.trace[-1]
        right = f"{run.rights[-1][1]:.4f}" if run.rights else ""
        print(f"{name:<10}" + "".join(f"{cell:>16}" for cell in cells) + f"{objective:>16.4f}"
              f"{objective / best - 1:>9.0e}{nonzeros:>10}{run.violation:>10.1e}{run.seconds:>8.1f}{right:>8}"
              + ("" if run.over else "  not at its end"))  # fmt: skip
    for other in named:
        if other != first and reached.get((first, 1e-4)) and reached[other, 1e-4]:
            ratio = reached[other, 1e-4][0] / reached[first, 1e-4][0]
            print(f"to 1e-4: {first} {ratio:.1f} times as fast as {other}")
    return best


def draw(runs, named, best, folder):
    """Figures 1, 2, 7 and 8 of Zhong et al. 2014."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(2, 2, figsize=(11, 8))
    for name, run in named.items():
        s, p, f, n = map(np.array, zip(*run.trace, strict=True))
        error = np.maximum((f - best) / best, 1e-12)
        axes[0, 0].semilogy(s, error, label=name)
        axes[0, 1].semilogy(p, error, label=name)
        axes[1, 0].loglog(s, n, label=name)
        if run.rights:
            axes[1, 1].semilogx(*zip(*run.rights, strict=True), marker=".", label=name)
    names = (
        ("CPU seconds", "relative objective difference"),
        ("values and gradients", "relative objective difference"),
        ("CPU seconds", "non-zeros"),
        ("CPU seconds", "right on test data"),
    )
    for axis, (x, y) in zip(axes.flat, names, strict=True):
        axis.set_xlabel(x), axis.set_ylabel(y), axis.legend()
    figure.suptitle(runs.title.replace("-", " "))
    figure.tight_layout()
    figure.savefig(folder / f"{runs.title}.png", dpi=110)
    plt.close(figure)
